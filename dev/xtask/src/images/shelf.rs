//! Finished images: one archive for each content, and for each hash of inputs a note which content came of it.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use fs_err as fs;

use super::BuiltImage;
use super::store::Store;
use super::workshop::Workshop;

/// How many archives of one image stay, the last used ones: as many as a few branches and checkouts go between.
const ARCHIVES: usize = 4;

/// The image that these inputs gave before.
pub(super) fn find(store: &Store, name: &'static str, inputs: &str) -> Result<Option<BuiltImage>> {
    let Ok(id) = fs::read_to_string(note_path(store, name, inputs)) else {
        return Ok(None);
    };
    let image = image(store, name, &id);
    let Ok(archive) = fs::File::options().append(true).open(&image.archive) else {
        return Ok(None);
    };
    archive.into_parts().0.set_modified(SystemTime::now())?;
    Ok(Some(image))
}

/// Keeps the image with identifier `id`.
pub(super) fn put(workshop: &Workshop, name: &'static str, id: &str) -> Result<BuiltImage> {
    let image = image(&workshop.store, name, id);
    if !image.archive.exists() {
        workshop.save(id, &image.reference, &image.archive)?;
        remove_old_archives(&workshop.store, name)?;
    }
    Ok(image)
}

/// Notes which image these inputs gave, so that [`find`] finds it.
pub(super) fn note(store: &Store, name: &str, inputs: &str, id: &str) -> Result<()> {
    Ok(fs::write(note_path(store, name, inputs), id)?)
}

fn folder(store: &Store, name: &str) -> PathBuf {
    store.path("images").join(name)
}

fn note_path(store: &Store, name: &str, inputs: &str) -> PathBuf {
    folder(store, name).join(format!("{inputs}.id"))
}

fn image(store: &Store, name: &'static str, id: &str) -> BuiltImage {
    let short = id.get(..12).unwrap_or(id);
    BuiltImage {
        name,
        reference: format!("codeworkspace.dev/{name}:dev-{short}"),
        archive: folder(store, name).join(format!("{short}.tar")),
    }
}

fn remove_old_archives(store: &Store, name: &str) -> Result<()> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder(store, name))? {
        let entry = entry?;
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "tar")
        {
            archives.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    archives.sort();
    let surplus = archives.len().saturating_sub(ARCHIVES);
    for (_, path) in archives.into_iter().take(surplus) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn store_with_an_image(folder: &tempfile::TempDir) -> Store {
        let store = Store::at(folder.path());
        fs::create_dir_all(folder.path().join("images/python")).unwrap();
        note(&store, "python", "aaaa", ID).unwrap();
        fs::write(folder.path().join("images/python/0123456789ab.tar"), "").unwrap();
        store
    }

    #[test]
    fn the_same_inputs_find_the_image_under_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_an_image(&folder);
        let expected = BuiltImage {
            name: "python",
            reference: "codeworkspace.dev/python:dev-0123456789ab".into(),
            archive: folder.path().join("images/python/0123456789ab.tar"),
        };
        assert_eq!(find(&store, "python", "aaaa").unwrap(), Some(expected));
        assert_eq!(find(&store, "python", "bbbb").unwrap(), None);
        assert_eq!(find(&store, "node", "aaaa").unwrap(), None);
    }

    #[test]
    fn an_image_whose_archive_is_gone_is_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_an_image(&folder);
        fs::remove_file(folder.path().join("images/python/0123456789ab.tar")).unwrap();
        assert_eq!(find(&store, "python", "aaaa").unwrap(), None);
    }

    #[test]
    fn the_archives_that_were_used_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = store_with_an_image(&folder);
        for age in 1..=5 {
            let archive = fs::File::create(folder.path().join(format!("images/python/{age}.tar"))).unwrap();
            archive
                .into_parts()
                .0
                .set_modified(SystemTime::now() - Duration::from_hours(age))
                .unwrap();
        }
        remove_old_archives(&store, "python").unwrap();
        let mut left: Vec<_> = fs::read_dir(folder.path().join("images/python"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["0123456789ab.tar", "1.tar", "2.tar", "3.tar", "aaaa.id"]);
    }
}
