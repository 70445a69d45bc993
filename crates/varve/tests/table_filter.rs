//! The filter never denies a key it was given, and seldom admits another.

use varve::table::{Filter, FilterBuilder, hash_key};

fn filter_over(keys: u64, bits_per_key: u32) -> Filter {
    let mut builder = FilterBuilder::new(bits_per_key);
    for number in 0..keys {
        builder.add(hash_key(&key(number)));
    }
    let bytes = builder.finish();
    assert_eq!(bytes.len(), builder.bytes());
    Filter::decode(&bytes).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("user:{number:016x}").into_bytes()
}

fn false_positives(filter: &Filter, keys: u64) -> f64 {
    const PROBES: u64 = 100_000;
    let admitted = (keys..keys + PROBES).filter(|&number| filter.may_contain(hash_key(&key(number)))).count();
    admitted as f64 / PROBES as f64
}

#[test]
fn keys_that_were_added_are_admitted() {
    for keys in [1, 2, 50, 51, 1000, 20_000] {
        for bits_per_key in [1, 10, 14, 64] {
            let filter = filter_over(keys, bits_per_key);
            assert!(
                (0..keys).all(|number| filter.may_contain(hash_key(&key(number)))),
                "{keys} {bits_per_key}"
            );
        }
    }
}

#[test]
fn few_other_keys_are_admitted() {
    for keys in [1000, 20_000, 200_000] {
        let at_10 = false_positives(&filter_over(keys, 10), keys);
        assert!(at_10 < 0.015, "{at_10} of other keys admitted at 10 bits and {keys} keys");
        let at_14 = false_positives(&filter_over(keys, 14), keys);
        assert!(at_14 < 0.004, "{at_14} of other keys admitted at 14 bits and {keys} keys");
    }
}

#[test]
fn a_filter_without_keys_admits_nothing() {
    let filter = filter_over(0, 10);
    assert!((0..100).all(|number| !filter.may_contain(hash_key(&key(number)))));
}
