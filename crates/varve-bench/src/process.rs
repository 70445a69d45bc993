//! Figures of the operating system about this process and a folder (Linux).

use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim_matches(':').split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Memory that the process holds now, in bytes; pages of the file cache are not in it.
#[must_use]
pub fn resident_bytes() -> u64 {
    field("/proc/self/status", "VmRSS") * 1024
}

/// The maximum memory that the process has used, in bytes.
#[must_use]
pub fn resident_bytes_max() -> u64 {
    field("/proc/self/status", "VmHWM") * 1024
}

/// Bytes given to the operating system's write calls since the process started.
#[must_use]
pub fn written_bytes() -> u64 {
    field("/proc/self/io", "wchar")
}

/// Bytes that the files of a folder take on disk. Room that was reserved and never written does not count.
#[must_use]
pub fn disk_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk_bytes(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}
