use super::*;

const FILE_OF_3: Member = Member::File {
    bytes: 3,
    executable: false,
};

fn link(target: &str) -> Member {
    Member::Link {
        target: target.to_owned(),
    }
}

/// The block with a change and the checksum to match.
fn changed(header: &[u8], change: impl FnOnce(&mut [u8; BLOCK])) -> Vec<u8> {
    let (extension, block) = header.split_last_chunk::<BLOCK>().unwrap();
    let mut block = *block;
    change(&mut block);
    [extension, &Block(block).seal()].concat()
}

/// A file's header after a `pax` header with the given data.
fn extended(data: &str) -> Vec<u8> {
    let mut header = Block::new(EXTENSION, PLAIN, data.len() as u64)
        .text(&NAME, "././@PaxHeader")
        .seal()
        .to_vec();
    header.extend(data.as_bytes());
    header.resize(header.len().next_multiple_of(BLOCK), 0);
    header.extend(encode("file", &FILE_OF_3));
    header
}

#[test]
fn a_header_has_fixed_values_in_every_field_that_is_not_about_the_file() {
    let header = encode(
        "src/tool.py",
        &Member::File {
            bytes: 10,
            executable: true,
        },
    );
    let field = |range: Range<usize>| {
        str::from_utf8(&header[range])
            .unwrap()
            .trim_end_matches('\0')
            .to_owned()
    };
    assert_eq!(
        [
            NAME,
            MODE,
            USER,
            GROUP,
            SIZE,
            TIME,
            CHECKSUM,
            156..157,
            LINK,
            MAGIC,
            265..329,
            329..345,
            PREFIX,
            500..512
        ]
        .map(field),
        [
            "src/tool.py",
            "0000755",
            "0000000",
            "0000000",
            "00000000012",
            "00000000000",
            "011317\0 ",
            "0",
            "",
            "ustar\x0000",
            "",
            "0000000\x000000000",
            "",
            ""
        ]
    );
}

#[test]
fn paths_of_every_length_keep_their_whole_name() {
    let multi_byte = "é".repeat(60) + "/" + &"日".repeat(40);
    for path in [
        "x".repeat(99),
        "x".repeat(100),
        "x".repeat(101),
        "x".repeat(255),
        format!("{}/{}", "x".repeat(155), "y".repeat(100)),
        format!("{}/{}", "x".repeat(156), "y".repeat(100)),
        format!("{}/{}", "x".repeat(155), "y".repeat(101)),
        format!("{}/{}", "f".repeat(10), "y".repeat(155)),
        "folder/".repeat(146) + "xy",
        multi_byte,
    ] {
        let header = encode(&path, &FILE_OF_3);
        assert_eq!(decode(&header), Ok((path, FILE_OF_3)));
    }
}

#[test]
fn a_pax_header_is_written_only_when_a_path_does_not_fit() {
    let blocks = |path: &str| encode(path, &FILE_OF_3).len() / BLOCK;
    assert_eq!(blocks(&"x".repeat(100)), 1);
    assert_eq!(blocks(&"x".repeat(101)), 3);
    assert_eq!(blocks(&format!("{}/{}", "x".repeat(155), "y".repeat(100))), 1);
    assert_eq!(blocks(&format!("{}/{}", "x".repeat(156), "y".repeat(100))), 3);
    assert_eq!(blocks(&format!("{}/{}", "x".repeat(155), "y".repeat(101))), 3);
}

#[test]
fn link_targets_of_every_length_keep_their_whole_text() {
    for (length, blocks) in [(1, 1), (100, 1), (101, 3), (1_024, 5)] {
        let target = link(&"t".repeat(length));
        let header = encode("link", &target);
        assert_eq!(header.len() / BLOCK, blocks, "{length}");
        assert_eq!(decode(&header), Ok(("link".to_owned(), target)));
    }
}

#[test]
fn a_size_that_octal_digits_can_not_hold_goes_to_a_pax_header() {
    for (bytes, blocks) in [
        (LARGEST_OCTAL_SIZE, 1),
        (LARGEST_OCTAL_SIZE + 1, 3),
        (u64::MAX, 3),
    ] {
        let member = Member::File {
            bytes,
            executable: false,
        };
        let header = encode("file", &member);
        assert_eq!(header.len() / BLOCK, blocks, "{bytes}");
        assert_eq!(decode(&header), Ok(("file".to_owned(), member)));
    }
}

#[test]
fn the_length_of_a_record_counts_its_own_digits() {
    assert_eq!(record("path", "x"), b"9 path=x\n");
    for (value, digits) in [(1, "9"), (2, "11"), (90, "99"), (91, "101"), (990, "1001")] {
        let record = String::from_utf8(record("path", &"x".repeat(value))).unwrap();
        assert!(
            record.starts_with(&format!("{digits} path=")) && record.len().to_string() == digits,
            "{record}"
        );
    }
}

#[test]
fn faults_that_occur_in_other_archives_are_named() {
    let file = encode("file", &FILE_OF_3);
    let mut damaged = file.clone();
    damaged[0] ^= 1;
    assert_eq!(decode(&damaged), Err(HeaderError::Checksum));
    for kind in [
        b'\0', b'1', b'3', b'4', b'5', b'6', b'7', b'S', b'L', b'K', b'g', b'x',
    ] {
        assert_eq!(
            decode(&changed(&file, |block| block[TYPE] = kind)),
            Err(HeaderError::Type(kind))
        );
    }
    for mode in ["0000664", "0000777", "0004755", "0001644"] {
        let header = changed(&file, |block| *block = Block(*block).text(&MODE, mode).0);
        assert_eq!(
            decode(&header),
            Err(HeaderError::Mode(u64::from_str_radix(mode, 8).unwrap()))
        );
    }
    for (field, digit) in [(SIZE, 0x80), (SIZE, b'9'), (MODE, b'-')] {
        let header = changed(&file, |block| block[field.start] = digit);
        assert_eq!(decode(&header), Err(HeaderError::Number), "{field:?} {digit}");
    }
    assert_eq!(
        decode(&changed(&file, |block| block[0] = 0xff)),
        Err(HeaderError::Encoding)
    );
}

#[test]
fn everything_that_a_bundle_never_has_is_refused() {
    let file = encode("file", &FILE_OF_3);
    let long = encode(&"x".repeat(101), &FILE_OF_3);
    let set = |header: &[u8], place: usize, byte: u8| changed(header, |block| block[place] = byte);
    for (header, what) in [
        (set(&file, USER.start, b'1'), "an owner"),
        (set(&file, GROUP.start, b'1'), "a group"),
        (set(&file, TIME.start, b'1'), "a time"),
        (set(&file, 265, b'r'), "an owner's name"),
        (set(&file, 297, b'r'), "a group's name"),
        (set(&file, LINK.start, b'x'), "a link target at a file"),
        (set(&file, 511, 1), "something in the unused rest"),
        (set(&file, 10, b'x'), "something after the end of the name"),
        (set(&file, SIZE.end - 1, b' '), "a number that ends in a space"),
        (set(&file, MAGIC.start + 5, b' '), "the magic of old GNU tar"),
        (
            set(&encode("link", &link("x")), MODE.start + 4, b'6'),
            "a link with another mode",
        ),
        (
            set(&encode("link", &link("x")), SIZE.end - 2, b'3'),
            "a link with contents",
        ),
        (set(&long, 0, b'y'), "another name beside a pax path"),
        (extended("13 path=file\n"), "a needless pax path"),
        (extended("9 size=3\n"), "a needless pax size"),
        (vec![0; 3], "less than a block"),
    ] {
        assert_eq!(decode(&header), Err(HeaderError::Dialect), "{what}");
    }
    let mut beyond_data = long.clone();
    beyond_data[2 * BLOCK - 1] = b'x';
    assert_eq!(decode(&beyond_data), Err(HeaderError::Dialect));
    let mut owner_in_pax_header = long;
    owner_in_pax_header[USER.start] = b'1';
    assert_eq!(decode(&owner_in_pax_header), Err(HeaderError::Dialect));
}

#[test]
fn unknown_and_malformed_records_are_refused() {
    assert_eq!(
        decode(&extended("13 mtime=1.5\n")),
        Err(HeaderError::UnknownRecord("mtime".to_owned()))
    );
    assert_eq!(
        decode(&extended("24 GNU.sparse.major=1.0\n")),
        Err(HeaderError::UnknownRecord("GNU.sparse.major".to_owned()))
    );
    for data in [
        "path=x\n",
        "8 path=x\n",
        "11 path=x\n",
        "9 path=xy",
        "7 path\n",
        "0 \n",
        "x path=x\n",
        "18446744073709551616 path=x\n",
    ] {
        assert_eq!(decode(&extended(data)), Err(HeaderError::Extension), "{data}");
    }
    assert_eq!(decode(&extended("9 size=x\n")), Err(HeaderError::Number));
}

#[test]
fn a_header_tells_how_long_it_is() {
    let more = |header: &[u8]| extension_bytes(header.first_chunk::<BLOCK>().unwrap());
    assert_eq!(more(&encode("file", &FILE_OF_3)), Ok(0));
    assert_eq!(more(&encode(&"x".repeat(101), &FILE_OF_3)), Ok(2 * BLOCK));
    let extension = |bytes| Block::new(EXTENSION, PLAIN, bytes).seal();
    assert_eq!(more(&extension(4_096)), Ok(9 * BLOCK));
    for bytes in [0, 4_097, LARGEST_OCTAL_SIZE] {
        assert_eq!(more(&extension(bytes)), Err(HeaderError::Extension), "{bytes}");
    }
}
