//! A flipped byte anywhere in a closed store is told, or changes nothing.

use varve_sim::rot::{Damage, flip_bytes};
use varve_sim::workload::generate;

#[test]
fn flipped_bytes_never_give_a_wrong_answer() {
    let mut damage = Damage::default();
    for seed in 0..25 {
        match flip_bytes(&generate(seed), 40) {
            Ok(more) => {
                damage.told += more.told;
                damage.harmless += more.harmless;
            }
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(damage.told > 200 && damage.harmless > 100, "{damage:?}");
}
