//! Where an archive ends, and how large it may be.

use std::io::BufReader;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

#[test]
fn an_archive_that_stops_anywhere_is_truncated() {
    let whole = gzip(&Tar::new().file("t/a", &"a".repeat(2000)).end());
    for length in 0..whole.len() {
        assert_eq!(
            read_gzip(&whole[..length]),
            Err(ArchiveError::Truncated),
            "{length} of {} bytes",
            whole.len()
        );
    }
    read_gzip(&whole).unwrap();
}

#[test]
fn an_archive_that_was_cut_before_compression_is_truncated() {
    let tar = Tar::new().file("t/a", "a").end();
    let content_end = tar.len() - 1024;
    for length in [
        content_end - 100,
        content_end,
        content_end + 512,
        content_end + 1000,
    ] {
        assert_eq!(
            read_gzip(&gzip(&tar[..length])),
            Err(ArchiveError::Truncated),
            "{length} of {} bytes",
            tar.len()
        );
    }
}

#[test]
fn nothing_may_follow_the_end() {
    let tar = Tar::new().file("t/a", "a").end();
    let refused = |bytes: &[u8]| match read_gzip(bytes) {
        Err(ArchiveError::Refused(text)) => text,
        other => panic!("not refused: {other:?}"),
    };
    let whole = gzip(&tar);
    assert_eq!(
        refused(&[whole.clone(), vec![0]].concat()),
        "something follows the compressed data"
    );
    assert_eq!(
        refused(&[whole.clone(), whole.clone()].concat()),
        "something follows the compressed data"
    );
    let another = [tar.clone(), Tar::new().file("t/b", "b").end()].concat();
    assert_eq!(refused(&gzip(&another)), "something follows its end");
    assert_eq!(
        refused(&gzip(&[tar.clone(), vec![0; 20_480]].concat())),
        "something follows its end"
    );
    read_gzip(&gzip(&[tar, vec![0; 9216]].concat())).unwrap();
}

#[test]
fn what_is_no_archive_is_refused() {
    for bytes in [
        &b"<!DOCTYPE html><title>404: Not Found</title>"[..],
        b"PK\x03\x04 a zip file, not gzip",
    ] {
        assert_eq!(
            read_gzip(bytes),
            Err(ArchiveError::refused("its compressed data is corrupt"))
        );
    }
}

#[test]
fn limits_stop_the_reader_and_say_both_numbers() {
    let error = |tar: Tar| read_tar(tar).unwrap_err().to_string();
    let files =
        |count: usize| (0..count).fold(Tar::new(), |tar, number| tar.file(&format!("t/{number}"), ""));
    let folders =
        |count: usize| (0..count).fold(Tar::new(), |tar, number| tar.folder(&format!("t/{number}/")));
    assert_eq!(read_tar(files(100)).unwrap().entries.len(), 100);
    assert_eq!(
        error(files(101)),
        "the repository has at least 101 files and links, more than the limit of 100 (maxEntries of the operator's \
         configuration)"
    );
    read_tar(folders(100)).unwrap();
    assert_eq!(
        error(folders(101)),
        "the repository has at least 101 folders, more than the limit of 100 (maxEntries of the operator's \
         configuration)"
    );
    read_tar(Tar::new().file("t/big", &"x".repeat(65_536))).unwrap();
    assert_eq!(
        error(Tar::new().file("t/big", &"x".repeat(65_537))),
        "file `t/big` has 65537 bytes, more than the limit of 65536 (maxFileBytes of the operator's configuration)"
    );
    let many = (0..20).fold(Tar::new(), |tar, number| {
        tar.file(&format!("t/{number}"), &"x".repeat(60_000))
    });
    let Err(ArchiveError::TooLarge { actual, limit, .. }) = read_tar(many) else {
        panic!("not too large")
    };
    assert_eq!(limit, LIMITS.inflated_bytes);
    assert!(
        limit < actual && actual < limit + 128 * 1024,
        "stopped at {actual}"
    );
}

#[test]
fn a_declared_size_that_never_comes_needs_no_memory() {
    let huge = header(b'0', b"t/huge", b"", 8_000_000_000, 0o664);
    let tar = gzip(&Tar::new().raw(&huge).unfinished());
    let limits = ArchiveLimits {
        file_bytes: u64::MAX,
        ..LIMITS
    };
    assert_eq!(
        read(&tar[..], Layout::Commit(&commit()), &limits),
        Err(ArchiveError::Truncated)
    );
}

#[test]
fn a_bomb_is_stopped_by_its_ratio() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let start = Tar::new()
        .raw(&header(b'0', b"t/zeros", b"", 1 << 30, 0o664))
        .unfinished();
    std::io::Write::write_all(&mut encoder, &start).unwrap();
    std::io::copy(
        &mut std::io::Read::take(std::io::repeat(0), 17 << 20),
        &mut encoder,
    )
    .unwrap();
    let bomb = encoder.finish().unwrap();
    let limits = ArchiveLimits {
        inflated_bytes: u64::MAX,
        file_bytes: u64::MAX,
        entries: 1,
    };
    match read(
        BufReader::with_capacity(512, &bomb[..]),
        Layout::Commit(&commit()),
        &limits,
    ) {
        Err(ArchiveError::Refused(text)) => assert!(text.ends_with("a ratio above 250"), "{text}"),
        other => panic!("not refused: {other:?}"),
    }
}
