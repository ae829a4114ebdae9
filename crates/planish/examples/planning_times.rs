//! How long queries take to be planned: `planning_times FOLDER_OF_QUERIES FOLDER_OF_TABLES`.
//!
//! Each file of the first folder is a query, each file of the second a table. Every query is
//! planned several times in one session, so that footers are known; the best time counts.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // An example prints.

use planish::{PlanningTimes, Result, Session};
use std::fs;
use std::path::PathBuf;

const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut folder = || -> Vec<PathBuf> {
        let folder = arguments.next().expect("two folders");
        let mut paths: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let (queries, tables) = (folder(), folder());
    let session = Session::builder().target_partitions(2).build()?;
    for table in tables {
        let name = table.file_stem().unwrap().to_string_lossy().into_owned();
        session.register_path(name, &table.display().to_string())?;
    }
    let mut all = vec![];
    for path in queries {
        let sql = fs::read_to_string(&path)?;
        let statements = session.statements(&sql)?;
        let Some(statement) = statements.last() else { continue };
        let mut best: Option<PlanningTimes> = None;
        for _ in 0..ROUNDS {
            let times = session.run(statement)?.planning_times();
            let ours = |t: &PlanningTimes| t.physical + t.optimizer;
            best = Some(best.filter(|best| ours(best) <= ours(&times)).unwrap_or(times));
        }
        all.extend(best.map(|best| (path.file_stem().unwrap().to_owned(), best)));
    }
    all.sort_by_key(|(_, times)| std::cmp::Reverse(times.physical + times.optimizer));
    let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
    println!("query    logical  physical  optimizer  physical + optimizer (ms)");
    for (name, t) in &all {
        let sum = ms(t.physical + t.optimizer);
        let name = name.to_string_lossy();
        println!(
            "{name:8} {:7.2}  {:8.2}  {:9.2}  {sum:8.2}",
            ms(t.logical),
            ms(t.physical),
            ms(t.optimizer)
        );
    }
    let logs: f64 = all.iter().map(|(_, t)| ms(t.physical + t.optimizer).ln()).sum();
    println!("geometric mean of {}: {:.2} ms", all.len(), (logs / all.len() as f64).exp());
    Ok(())
}
