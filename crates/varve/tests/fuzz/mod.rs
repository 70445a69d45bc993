//! What the fuzz targets are made of.

pub mod allocations;
pub mod corpus;
pub mod mutate;
pub mod run;
pub mod targets;
