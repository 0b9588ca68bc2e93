//! How long it takes to build a bundle from files in memory, and to read one back.

#![expect(clippy::unwrap_used, reason = "criterion takes no errors")]

use std::hint::black_box;

use codeworkspace_bundle::{Bundle, BundleReader, Caps, FileTree, Layer, overlay};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

mod files;

fn benches(criterion: &mut Criterion) {
    let tree = files::tree().unwrap();
    let bundle = build(&tree);
    let mut group = criterion.benchmark_group("2,000 files, 10 MiB");
    group
        .sample_size(20)
        .throughput(Throughput::Bytes(bundle.size_bytes));
    group.bench_function("build", |bencher| bencher.iter(|| build(black_box(&tree))));
    group.bench_function("read", |bencher| {
        bencher.iter(|| BundleReader::new(black_box(&bundle.compressed[..])).and_then(BundleReader::finish));
    });
    let layers = [
        Layer {
            name: "code.sources[0]",
            tree: &tree,
        },
        Layer {
            name: "code.sources[1]",
            tree: &tree,
        },
    ];
    group.bench_function("overlay twice", |bencher| {
        bencher.iter(|| overlay(black_box(&layers)));
    });
    group.finish();
}

fn build(tree: &FileTree) -> Bundle {
    Bundle::build(tree, &Caps::default()).unwrap()
}

criterion_group!(group, benches);
criterion_main!(group);
