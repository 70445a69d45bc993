//! The choice of what to run, from the command line.

use std::path::PathBuf;

use varve_bench::engine::{Outcome, Settings};

pub const HELP: &str = "\
npm run bench:native -- scale [options]

  --pairs LIST      numbers of pairs (default: 2000000,4000000,10000000)
  --engines LIST    varve, fjall, redb, rocksdb (default: all)
  --reads N         most random reads of a phase (default: 2000000)
  --memory MIB      memory of each engine for memtables and cache (default: 64)
  --memtable MIB    size of a memtable (default: 4)
  --folder DIR      where the stores lie while they are measured (default: a folder in the temporary one)
  --json FILE       also writes everything measured as JSON
";

/// The choice, and in a child the one engine it is for.
#[derive(Debug, Clone)]
pub struct Choice {
    pub pairs: Vec<u64>,
    pub engines: Vec<String>,
    pub reads_max: u64,
    pub memory_mib: usize,
    pub memtable_mib: usize,
    pub folder: PathBuf,
    pub json: Option<PathBuf>,
    pub child: Option<String>,
}

impl Default for Choice {
    fn default() -> Self {
        let mut engines = vec!["varve", "fjall", "redb"];
        if cfg!(feature = "rocksdb") {
            engines.push("rocksdb");
        }
        Self {
            pairs: vec![2_000_000, 4_000_000, 10_000_000],
            engines: engines.into_iter().map(str::to_owned).collect(),
            reads_max: 2_000_000,
            memory_mib: 64,
            memtable_mib: 4,
            folder: std::env::temp_dir().join("varve-bench-scale"),
            json: None,
            child: None,
        }
    }
}

impl Choice {
    /// Reads the arguments; `None` when help was asked for.
    pub fn from_args(mut args: impl Iterator<Item = String>) -> Outcome<Option<Self>> {
        let mut choice = Self::default();
        while let Some(name) = args.next() {
            if name == "--help" {
                return Ok(None);
            }
            let value = args.next().ok_or_else(|| format!("{name} needs a value.\n\n{HELP}"))?;
            let list = || value.split(',').map(str::to_owned);
            match name.as_str() {
                "--pairs" => choice.pairs = list().map(|number| number.parse()).collect::<Result<_, _>>()?,
                "--engines" => choice.engines = list().collect(),
                "--reads" => choice.reads_max = value.parse()?,
                "--memory" => choice.memory_mib = value.parse()?,
                "--memtable" => choice.memtable_mib = value.parse()?,
                "--folder" => choice.folder = value.into(),
                "--json" => choice.json = Some(value.into()),
                "--child" => choice.child = Some(value),
                _ => return Err(format!("There is no option {name}.\n\n{HELP}").into()),
            }
        }
        Ok(Some(choice))
    }

    /// The arguments of the child that runs one engine at one size.
    pub fn for_child(&self, engine: &str, pairs: u64) -> Vec<String> {
        let options = [
            ("--child", engine.to_owned()),
            ("--pairs", pairs.to_string()),
            ("--reads", self.reads_max.to_string()),
            ("--memory", self.memory_mib.to_string()),
            ("--memtable", self.memtable_mib.to_string()),
            ("--folder", self.folder.display().to_string()),
        ];
        options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// Where an engine's store lies.
    pub fn folder(&self, engine: &str) -> PathBuf {
        self.folder.join(engine)
    }

    /// How engines are opened.
    pub fn settings(&self) -> Settings {
        Settings {
            memory_bytes: self.memory_mib << 20,
            memtable_bytes: self.memtable_mib << 20,
            buffered: false,
        }
    }
}
