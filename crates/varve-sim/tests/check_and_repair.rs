//! A check finds no problem in the stores that the simulator's workloads leave behind, and a repair of one contains
//! its contents.

use varve_sim::rot::check_and_repair;
use varve_sim::workload::generate;

#[test]
fn every_store_of_a_workload_is_sound_and_comes_back_whole_from_a_repair() {
    let mut tables = 0;
    for seed in 0..120 {
        match check_and_repair(&generate(seed)) {
            Ok(found) => tables += found,
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(tables > 100, "{tables} tables");
}
