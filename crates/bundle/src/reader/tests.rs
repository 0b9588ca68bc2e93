use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::{
    fixtures::{any_tree, path, tree},
    link::LinkRule,
    path::PathRule,
    tree::FileTree,
};

/// Compresses a tar as bundles are compressed.
fn compress(tar: &[u8]) -> Vec<u8> {
    let mut encoder = gzip::encoder(Vec::new());
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap()
}

fn file(at: &str, contents: &str) -> Vec<u8> {
    let member = Member::File {
        bytes: contents.len() as u64,
        executable: false,
    };
    let mut bytes = tar::encode(at, &member);
    bytes.extend(contents.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn link(at: &str, target: &str) -> Vec<u8> {
    tar::encode(
        at,
        &Member::Link {
            target: target.to_owned(),
        },
    )
}

/// A tar of the parts as they are, in any order and whether legal or not.
fn archive(parts: &[&[u8]]) -> Vec<u8> {
    [parts, &[&END]].concat().concat()
}

fn read(compressed: &[u8]) -> Result<(FileTree, Digest), ReadError> {
    let mut reader = BundleReader::new(compressed)?;
    let mut tree = FileTree::new();
    for entry in reader.by_ref() {
        let (path, entry) = entry?;
        tree.insert(path, entry)
            .expect("what the reader accepts makes a tree");
    }
    Ok((tree, reader.finish()?))
}

fn read_error(tar: &[u8]) -> ReadError {
    read(&compress(tar)).expect_err("a refusal")
}

#[test]
fn a_bundle_is_read_entry_by_entry_with_its_digest_at_the_end() {
    let tar = archive(&[&file("a", "text"), &link("b", "a")]);
    let (files, digest) = read(&compress(&tar)).unwrap();
    assert_eq!(files, tree(&[("a", "text"), ("b", "-> a")]));
    assert_eq!(digest, Digest::of(&tar));
}

#[test]
fn the_digest_covers_entries_that_nobody_asked_for() {
    let tar = archive(&[&file("a", "text"), &file("b", "more")]);
    let compressed = compress(&tar);
    let mut reader = BundleReader::new(&compressed[..]).unwrap();
    assert!(matches!(reader.next(), Some(Ok(_))));
    assert_eq!(reader.finish().unwrap(), Digest::of(&tar));
}

#[test]
fn after_an_error_there_are_neither_entries_nor_a_digest() {
    let tar = archive(&[&file("a", ""), &file("a", ""), &file("b", "")]);
    let compressed = compress(&tar);
    let mut reader = BundleReader::new(&compressed[..]).unwrap();
    assert!(matches!(reader.next(), Some(Ok(_))));
    assert!(matches!(reader.next(), Some(Err(ReadError::Order { .. }))));
    assert!(reader.next().is_none());
    assert!(matches!(reader.finish(), Err(ReadError::Failed)));
}

#[test]
fn finishing_reports_a_fault_in_what_was_left_to_read() {
    let tar = archive(&[&file("a", ""), &file("a", "")]);
    let compressed = compress(&tar);
    assert!(matches!(
        BundleReader::new(&compressed[..]).unwrap().finish(),
        Err(ReadError::Order { .. })
    ));
}

#[test]
fn paths_are_sorted_and_unique() {
    for (first, second) in [("b", "a"), ("a", "a"), ("a/b", "a"), ("a/b", "a-b")] {
        let error = read_error(&archive(&[&file(first, ""), &file(second, "")]));
        let ReadError::Order {
            path: refused,
            previous,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((refused, previous), (path(second), path(first)));
    }
}

#[test]
fn nothing_lies_below_a_file_or_a_link() {
    // The entry between them must not hide the clash.
    for above in [file("a", ""), link("a", "b")] {
        let error = read_error(&archive(&[&above, &file("a-b", ""), &file("a/b/c", "")]));
        assert_eq!(error.to_string(), "`a/b/c` lies below `a`, which is not a folder");
    }
}

#[test]
fn illegal_paths_are_refused() {
    for (at, rule) in [
        ("/etc/passwd", PathRule::Absolute),
        ("../a", PathRule::ParentSegment),
        ("a/./b", PathRule::DotSegment),
        ("folder/", PathRule::TrailingSlash),
        ("a\\b", PathRule::Backslash),
        ("a\nb", PathRule::Control),
        ("", PathRule::Empty),
    ] {
        let error = read_error(&archive(&[&file(at, "")]));
        let ReadError::Path { number: 1, error } = error else {
            panic!("{error}")
        };
        assert_eq!(error.rule, rule, "{at}");
    }
}

#[test]
fn links_out_of_the_bundle_are_refused() {
    for (target, rule) in [
        ("/etc/passwd", LinkRule::Absolute),
        ("../../x", LinkRule::Outside),
        ("b/../../../x", LinkRule::Detour),
        ("", LinkRule::Empty),
    ] {
        let error = read_error(&archive(&[&link("a/l", target)]));
        let ReadError::Link(error) = error else {
            panic!("{error}")
        };
        assert_eq!(error.rule, rule, "{target}");
    }
}

#[test]
fn a_foreign_header_is_refused_with_the_number_of_its_entry() {
    let mut damaged = file("b", "");
    damaged[0] ^= 1;
    let error = read_error(&archive(&[&file("a", ""), &damaged]));
    assert_eq!(error.to_string(), "entry 2 has a wrong checksum");
}

#[test]
fn an_archive_of_another_tool_is_refused() {
    let mut builder = ::tar::Builder::new(Vec::new());
    let mut header = ::tar::Header::new_gnu();
    header.set_size(4);
    header.set_entry_type(::tar::EntryType::Regular);
    header.set_mode(0o664);
    builder.append_data(&mut header, "a", &b"text"[..]).unwrap();
    let error = read_error(&builder.into_inner().unwrap());
    assert!(
        matches!(
            error,
            ReadError::Header {
                number: 1,
                error: HeaderError::Mode(0o664)
            }
        ),
        "{error}"
    );
}

#[test]
fn files_are_filled_up_with_zeros() {
    let mut dirty = file("a", "text");
    dirty[BLOCK + 4] = b'!';
    assert_eq!(
        read_error(&archive(&[&dirty])).to_string(),
        "`a` is not filled up with zeros"
    );
}

#[test]
fn nothing_follows_the_end() {
    let tar = archive(&[&file("a", "text")]);
    for rest in [&[0_u8][..], &[0; BLOCK], &file("b", ""), b"x"] {
        let error = read_error(&[&tar, rest].concat());
        assert!(matches!(error, ReadError::TrailingData), "{error}");
    }
    let one_zero_block = [file("a", ""), vec![0; BLOCK], file("b", ""), END.to_vec()].concat();
    assert!(matches!(read_error(&one_zero_block), ReadError::TrailingData));

    let compressed = compress(&tar);
    for rest in [&compressed[..], b"x", &[0]] {
        let error = read(&[&compressed, rest].concat()).unwrap_err();
        assert!(matches!(error, ReadError::TrailingData), "{error}");
    }
}

#[test]
fn a_bundle_cut_anywhere_is_called_cut_short() {
    let compressed = compress(&archive(&[&file("a", "text"), &file("b", &"long ".repeat(300))]));
    for length in 0..compressed.len() {
        let error = read(&compressed[..length]).expect_err("a refusal");
        assert!(matches!(error, ReadError::Truncated), "{length}: {error}");
    }
    let no_end = compress(&file("a", "text"));
    assert!(matches!(read(&no_end), Err(ReadError::Truncated)));
    let half_a_file = compress(&file("a", "text")[..BLOCK + 2]);
    assert!(matches!(read(&half_a_file), Err(ReadError::Truncated)));
}

#[test]
fn other_gzip_headers_are_refused() {
    let compressed = compress(&archive(&[]));
    for place in 0..gzip::HEADER.len() {
        let mut other = compressed.clone();
        other[place] ^= 1;
        assert!(matches!(read(&other), Err(ReadError::Gzip)), "byte {place}");
    }
}

#[test]
fn sizes_are_refused_before_the_bytes_are_read() {
    let caps = Caps {
        entries: 2,
        file_bytes: 10,
        total_bytes: 15,
    };
    let claims = |bytes| {
        tar::encode(
            "a",
            &Member::File {
                bytes,
                executable: false,
            },
        )
    };
    let error = |tar: &[u8]| {
        let compressed = compress(tar);
        BundleReader::with_caps(&compressed[..], caps)
            .unwrap()
            .finish()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(&claims(1 << 60)),
        format!("`a` is {} bytes large; a file may have at most 10", 1_u64 << 60)
    );
    assert_eq!(
        error(&archive(&[&file("a", "1234567890"), &file("b", "123456")])),
        "the bundle's files are 16 bytes large; together they may have at most 15"
    );
    assert_eq!(
        error(&archive(&[&file("a", ""), &file("b", ""), &file("c", "")])),
        "the bundle has 3 entries; at most 2 are allowed"
    );
}

#[test]
fn exactly_the_caps_are_read() {
    let caps = Caps {
        entries: 2,
        file_bytes: 10,
        total_bytes: 15,
    };
    let compressed = compress(&archive(&[&file("a", "1234567890"), &file("b", "12345")]));
    assert!(
        BundleReader::with_caps(&compressed[..], caps)
            .unwrap()
            .finish()
            .is_ok()
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
        prop_assert!(read(&[&gzip::HEADER, &bytes[..]].concat()).is_err());
        // An archive in which one part is arbitrary.
        read(&compress(&archive(&[&bytes, &file("a", "text")]))).ok();
    }

    #[test]
    fn a_flipped_bit_in_the_archive_is_never_read_with_the_same_digest(
        files in any_tree(), place in any::<prop::sample::Index>(), bit in 0..8_u32
    ) {
        let mut archive = Vec::new();
        tar::write(&files, &mut archive).unwrap();
        let digest = Digest::of(&archive);
        let place = place.index(archive.len());
        archive[place] ^= 1_u8 << bit;
        if let Ok((_, other)) = read(&compress(&archive)) {
            prop_assert_ne!(other, digest);
        }
    }

    #[test]
    fn a_flipped_bit_in_the_compressed_bytes_never_changes_what_a_digest_stands_for(
        files in any_tree(), place in any::<prop::sample::Index>(), bit in 0..8_u32
    ) {
        let bundle = crate::Bundle::build(&files, &Caps::default()).unwrap();
        let mut compressed = bundle.compressed.to_vec();
        let place = place.index(compressed.len());
        compressed[place] ^= 1_u8 << bit;
        // Deflate has several spellings for the same bytes, so some flips change nothing.
        if let Ok((other, digest)) = read(&compressed) {
            prop_assert_eq!(other == files, digest == bundle.digest);
            prop_assert_eq!(digest, bundle.digest, "the checksum of gzip should have told");
        }
    }
}
