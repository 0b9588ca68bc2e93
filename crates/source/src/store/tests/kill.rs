//! The process ends at any instant, by a signal that it cannot see.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::*;

/// Tells the writer below where to write.
const FOLDER: &str = "CODEWORKSPACE_STORE_FOLDER";
const KILLS: u64 = 60;
/// Trees that are written over and over, and the room for them: not for all, so that some always have to go.
const TREES: u64 = 12;
const ROOM: u64 = 40 * 64 * 1024;

/// A tree that can be told from the others, of some hundred kilobytes.
fn content(number: u64) -> Arc<RepositoryTree> {
    let value = u8::try_from(number).unwrap();
    tree_of(value, 100_000 + usize::from(value) * 25_000)
}

fn open(directory: &Path) -> Store {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    Store::new(Some(configuration(directory, ROOM)), clock)
}

#[tokio::test]
#[ignore = "a process of the test below, which kills it"]
async fn writer() {
    let Some(directory) = std::env::var_os(FOLDER) else {
        return;
    };
    let store = open(Path::new(&directory));
    for number in (0..TREES).cycle() {
        store.put_tree(&key(number), content(number)).await;
        // The first line says that writing has begun.
        println!("wrote {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whenever_the_process_is_killed_there_are_whole_trees_and_nothing_else() {
    let place = Place::new();
    let directory = place.directory();
    let mut random = TestRunner::default();
    let (mut seen, mut unfinished) = (0, 0);
    for _ in 0..KILLS {
        let wait = (0..20_000_u64).new_tree(&mut random).unwrap().current();
        kill_while_writing(&directory, Duration::from_micros(wait));
        let left = files(&directory.join("trees"));
        unfinished += left
            .iter()
            .filter(|file| {
                file.extension()
                    .is_some_and(|extension| extension == "unfinished")
            })
            .count();

        let store = open(&directory);
        let mut whole = 0;
        for number in 0..TREES {
            if let Some(tree) = store.tree(&key(number)).await {
                assert_eq!(tree, *content(number));
                whole += 1;
            }
        }
        assert_eq!(
            files(&directory.join("trees")).len(),
            whole,
            "every file is a whole tree"
        );
        assert!(store.statistics().bytes <= ROOM);
        seen += whole;
    }
    assert!(seen > 0, "something was written before a kill");
    assert!(unfinished > 0, "some kill met a file that was being written");
}

fn kill_while_writing(directory: &Path, wait: Duration) {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "store::tests::kill::writer",
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept to the end: a writer that nobody listens to would end by itself.
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let begun = |line: Result<String, _>| line.unwrap().contains("wrote");
    assert!(lines.any(begun), "the writer ended");
    // A random point, not a moment to wait for.
    thread::sleep(wait);
    writer.kill().unwrap();
    writer.wait().unwrap();
}
