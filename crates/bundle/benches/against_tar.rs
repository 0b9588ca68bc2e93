//! Builds the same files by [`Bundle::build`] and by `tar | gzip -6`, in turns within one run, and prints the medians
//! and their ratio. The target is a ratio of at most 2.
//!
//! Ours has the files in memory, as the operator has them after fetching; `tar` reads them from the page cache.

use std::{
    error::Error,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use codeworkspace_bundle::{Bundle, Caps, Entry, FileTree};

mod files;

const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let tree = files::tree()?;
    let folder = tempfile::tempdir()?;
    write(&tree, folder.path())?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_bytes, mut their_bytes) = (0, 0);
    // The first round warms the page cache and counts for neither.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        our_bytes = Bundle::build(&tree, &Caps::default())?.compressed.len();
        let our_time = start.elapsed();
        let start = Instant::now();
        their_bytes = tar_and_gzip(folder.path())?;
        let their_time = start.elapsed();
        if round > 0 {
            ours.push(our_time);
            theirs.push(their_time);
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "{} files, {} bytes, median of {ROUNDS} rounds",
        tree.len(),
        tree.content_bytes()
    );
    println!("Bundle::build   {:7.1} ms  {our_bytes} bytes", milliseconds(ours));
    println!(
        "tar | gzip -6   {:7.1} ms  {their_bytes} bytes",
        milliseconds(theirs)
    );
    println!(
        "ratio           {:7.2}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    Ok(())
}

fn write(tree: &FileTree, root: &Path) -> Result<(), Box<dyn Error>> {
    for (path, entry) in tree {
        let place = root.join(path.as_str());
        if let (Some(folder), Entry::File { contents, .. }) = (place.parent(), entry) {
            fs::create_dir_all(folder)?;
            fs::write(&place, contents)?;
        }
    }
    Ok(())
}

fn tar_and_gzip(root: &Path) -> Result<usize, Box<dyn Error>> {
    let mut tar = Command::new("tar")
        .arg("--create")
        .arg("--file=-")
        .arg("--directory")
        .arg(root)
        .arg(".")
        .stdout(Stdio::piped())
        .spawn()?;
    let archive = tar.stdout.take().ok_or("tar has no output")?;
    let gzip = Command::new("gzip").arg("-6").stdin(archive).output()?;
    if tar.wait()?.success() && gzip.status.success() {
        Ok(gzip.stdout.len())
    } else {
        Err("tar or gzip failed".into())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
