//! XXH3-64, the only checksum of the format (20 GB/s in wasm with simd128, where CRC has no instruction).
//!
//! Invariant: the results are those of the reference implementation. The vectors below test this, because a checksum
//! that silently changes would make every store unreadable.

use xxhash_rust::xxh3;

/// The hash of `bytes` under `seed`.
#[inline]
#[must_use]
#[cfg_attr(varve_size, optimize(speed))]
pub fn xxh3(bytes: &[u8], seed: u64) -> u64 {
    xxh3::xxh3_64_with_seed(bytes, seed)
}

/// The same hash, fed in pieces. Costs some 600 bytes of state: prefer [`xxh3()`] when the bytes lie together.
#[derive(Clone)]
pub struct Xxh3 {
    state: xxh3::Xxh3,
}

impl Xxh3 {
    /// An empty state under `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: xxh3::Xxh3::with_seed(seed) }
    }

    /// Feeds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// The hash of all bytes fed so far.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.state.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 31 + 7) as u8).collect()
    }

    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

    /// (length of the pattern, seed, hash), from the reference C library: each path of the algorithm by
    /// length.
    const VECTORS: &[(usize, u64, u64)] = &[
        (0, 0, 0x2d06_8005_38d3_94c2),
        (0, SEED, 0x602b_0e2c_d666_2c8b),
        (1, 0, 0x4c5c_ca45_d0f4_811f),
        (1, SEED, 0x2f3a_cd38_05f8_1de3),
        (3, 0, 0x15f7_093b_173d_005c),
        (3, SEED, 0x079d_d5d5_4d89_480a),
        (4, 0, 0xdca0_12f9_5811_b6b9),
        (4, SEED, 0x1a24_6e2e_fb9c_9b2e),
        (8, 0, 0xdec6_a9a4_3575_982e),
        (8, SEED, 0x19ef_7d39_1910_8aff),
        (9, 0, 0xcbe3_9339_9f17_ffbd),
        (9, SEED, 0x9c98_d3e2_4dc5_4d34),
        (16, 0, 0x7e48_4c18_d748_95d0),
        (16, SEED, 0xa106_5100_78b0_a252),
        (17, 0, 0x208b_de5e_e2be_d407),
        (17, SEED, 0x0b2c_af8b_f964_8eff),
        (32, 0, 0x03df_0ac5_255d_1446),
        (32, SEED, 0x3acb_fdfb_7e9f_9668),
        (64, 0, 0xdd30_702a_b46b_3745),
        (64, SEED, 0x4490_c19c_7048_a1a1),
        (128, 0, 0xf92b_70ea_a21a_6288),
        (128, SEED, 0x9542_5530_beb8_9fe8),
        (129, 0, 0xf8f7_6713_f2bb_60fa),
        (129, SEED, 0x29fa_850b_97ed_9666),
        (200, 0, 0x12fd_b864_685f_344d),
        (200, SEED, 0x49df_f623_641b_01b4),
        (240, 0, 0xccc7_3751_72c4_1f03),
        (240, SEED, 0x2d88_2e78_99ff_64cc),
        (241, 0, 0x0b3b_6309_48ce_4a00),
        (241, SEED, 0x422e_82e8_913e_49e0),
        (256, 0, 0xec85_b75b_afe6_ca74),
        (256, SEED, 0xb4db_e810_e81c_3d97),
        (512, 0, 0xefc2_e52d_1c2f_fbaa),
        (512, SEED, 0x25db_f1d2_d735_1028),
        (1024, 0, 0x23bc_880e_bf0d_29c6),
        (1024, SEED, 0x7e24_9adc_60e1_f9b4),
        (1025, 0, 0xc09f_dfbc_398c_7d82),
        (1025, SEED, 0x16cf_e055_154f_f1dd),
        (3000, 0, 0x6eb4_b5bf_e14d_9786),
        (3000, SEED, 0x0fd2_8bc9_d73f_821c),
    ];

    #[test]
    fn golden_vectors() {
        for &(len, seed, expected) in VECTORS {
            let found = xxh3(&pattern(len), seed);
            assert_eq!(found, expected, "{len} bytes, seed {seed:#x}: {found:#018x}");
        }
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        let bytes = pattern(3000);
        for seed in [0, SEED] {
            for cut in [0, 1, 16, 17, 240, 241, 1024, 2999, 3000] {
                let mut state = Xxh3::new(seed);
                state.update(&bytes[..cut]);
                state.update(&bytes[cut..]);
                assert_eq!(state.digest(), xxh3(&bytes, seed), "cut at {cut}");
            }
        }
    }
}
