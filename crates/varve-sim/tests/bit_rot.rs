//! A damaged place anywhere in a closed store is reported, or changes nothing.

use varve_sim::rot::{Damage, Fault, damage};
use varve_sim::workload::plain;

fn damage_many(fault: Fault) -> Damage {
    let mut total = Damage::default();
    for seed in 0..25 {
        match damage(&plain(seed), fault, 40) {
            Ok(more) => {
                total.reported += more.reported;
                total.harmless += more.harmless;
            }
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    total
}

#[test]
fn flipped_bytes_never_give_a_wrong_answer() {
    let damage = damage_many(Fault::Flip);
    assert!(damage.reported > 200 && damage.harmless > 100, "{damage:?}");
}

/// The story: a slot's header did not contain the number of its slot. The header of a log segment was written over the second
/// copy of the newest manifest's header, and was the newer of two valid copies. The store opened in its state before that
/// manifest (seed 2). Now the slot's number is part of the hash.
#[test]
fn sectors_that_were_written_elsewhere_never_give_a_wrong_answer() {
    let damage = damage_many(Fault::Misdirected);
    assert!(damage.reported > 120 && damage.harmless > 50, "{damage:?}");
}

#[test]
fn sectors_that_were_lost_never_give_a_wrong_answer() {
    let damage = damage_many(Fault::Lost);
    assert!(damage.reported > 120 && damage.harmless > 50, "{damage:?}");
}
