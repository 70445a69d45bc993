//! All tests of the simulator in one program, so that they are linked once. `cargo test --profile sim -p varve-sim --test simulator
//! takeovers` runs those of one file.

mod bit_rot;
mod check_and_repair;
mod crash_prefix;
mod determinism;
mod disk_faults;
mod exhaustive_crashes;
mod forgotten_flushes;
mod fresh_seeds;
mod lost_pages;
mod metamorphic;
mod mutants;
mod reads_that_wait;
mod takeovers;
mod wiping;
