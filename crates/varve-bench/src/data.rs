//! Keys and values: functions of a number, so that a read value can be compared without being remembered.
//!
//! Invariant: keys of different numbers differ (`mix` is a bijection), and bytes do not compress.

/// A bijection of 64 bits whose outputs look random (the finalizer of splitmix64).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fill(into: &mut [u8], seed: u64) {
    for (chunk, at) in into.chunks_mut(8).zip(0u64..) {
        let word = mix(seed ^ at.wrapping_mul(0x0101_0101_0101_0101)).to_be_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// The key of `number`, `N` bytes of at least 8; numbers in order give keys in random order.
#[must_use]
pub fn key<const N: usize>(number: u64) -> [u8; N] {
    let mut key = [0; N];
    fill(&mut key, number);
    key
}

/// As [`key`], but numbers in order give keys in order.
#[must_use]
pub fn key_in_order<const N: usize>(number: u64) -> [u8; N] {
    let mut key = key::<N>(number);
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// The value of `number` after it was written `version` times.
#[must_use]
pub fn value<const N: usize>(number: u64, version: u64) -> [u8; N] {
    let mut value = [0; N];
    fill(&mut value, !number ^ version << 48);
    value
}

/// A record of about 4 KB of JSON, as an application would store it.
#[must_use]
pub fn json(number: u64) -> Vec<u8> {
    let mut text = format!("{{\"id\":{number},\"events\":[");
    let mut at = 0;
    while text.len() < 4050 {
        let noise = mix(number << 8 | at);
        let [day, hour] = [noise % 28 + 1, noise / 28 % 24];
        text += &format!(
            "{{\"at\":\"2026-03-{day:02}T{hour:02}:00:00Z\",\"kind\":\"visit\",\"user\":\"{noise:016x}\"}},"
        );
        at += 1;
    }
    text.pop();
    (text + "]}").into_bytes()
}

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        ((u128::from(mix(self.0)) * u128::from(bound)) >> 64) as u64
    }
}
