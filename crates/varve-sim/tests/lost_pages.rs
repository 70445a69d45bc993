//! A page that is lost, wholly or in part, is reported if a file was in use that no other page has.

use varve_sim::pages::{PageFault, damage_pages, run_beneath};
use varve_sim::rot::Damage;
use varve_sim::workload::{generate, plain, unencrypted};

fn damage_many(fault: PageFault) -> Damage {
    let mut total = Damage::default();
    for seed in 0..120 {
        // In some there are few slots, so that files share them.
        let mut trace = generate(seed);
        trace.slots = if seed % 2 == 0 { trace.slots } else { 4 + (seed % 8) as u32 / 2 };
        match damage_pages(&trace, fault) {
            Ok(more) => {
                total.reported += more.reported;
                total.harmless += more.harmless;
            }
            Err(what) => panic!("seed {seed}: {what}"),
        }
    }
    println!("{fault:?}: {total:?}");
    total
}

/// The story: the slot of the newest segment counted as free. The store opened without the writes in it, and a check found nothing.
#[test]
fn a_page_that_is_lost_never_gives_a_wrong_answer() {
    let damage = damage_many(PageFault::Lost);
    assert!(damage.reported > 200 && damage.harmless > 20, "{damage:?}");
}

#[test]
fn a_half_of_a_page_that_is_lost_never_gives_a_wrong_answer() {
    let damage = damage_many(PageFault::HalfLost);
    assert!(damage.reported > 20 && damage.harmless > 20, "{damage:?}");
}

#[test]
fn a_page_whose_last_write_was_lost_is_found_by_a_check() {
    let damage = damage_many(PageFault::Stale);
    assert!(damage.reported > 20 && damage.harmless > 20, "{damage:?}");
}

#[test]
fn what_another_store_left_in_slots_is_no_damage() {
    for seed in 0..100 {
        let failure = run_beneath(&plain(seed ^ 0x01d), &unencrypted(seed));
        assert_eq!(failure, None, "seed {seed}");
    }
}
