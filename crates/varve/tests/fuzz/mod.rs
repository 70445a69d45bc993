//! The parts of the fuzz targets.

pub mod allocations;
pub mod corpus;
pub mod mutate;
pub mod run;
pub mod targets;
