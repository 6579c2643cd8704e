//! Embeds `packages/console/dist`, with the compressed forms that `make console` writes beside each file. Without a built
//! console it embeds a page that says how to build one: the gateway builds on a machine without Node.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("../../packages");
    let dist = root.join("console/dist");
    let built = dist.join("index.html").is_file();
    // What is not there would be looked for at every build, so the nearest folder that is there is watched.
    let watched = [dist.clone(), root.join("console"), root];
    let watched = watched.iter().find(|path| path.is_dir());
    if let Some(watched) = watched {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-changed=notice.html");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = BTreeMap::new();
    match built {
        true => collect(&dist, "", &mut files),
        false => {
            files.insert("/index.html".to_owned(), PathBuf::from("notice.html"));
        }
    }
    let out = PathBuf::from(env("OUT_DIR"));
    let code = table(&files, &out, built);
    fs::write(out.join("files.rs"), code).expect("the build directory is writable");
}

/// Every file below `folder` by its address, but those whose names begin with a dot.
fn collect(folder: &Path, address: &str, files: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        let name = path
            .file_name()
            .expect("an entry has a name")
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') {
            continue;
        }
        let address = format!("{address}/{name}");
        match path.is_dir() {
            true => collect(&path, &address, files),
            false => {
                files.insert(address, path);
            }
        }
    }
}

/// The table of files as Rust. Bytes are copied first: a build of the console that runs at the same time changes nothing.
fn table(files: &BTreeMap<String, PathBuf>, out: &Path, built: bool) -> String {
    let mut code =
        format!("pub(crate) const IS_BUILT: bool = {built};\npub(crate) static FILES: &[File] = &[\n");
    let mut number = 0;
    let mut embed = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let copy = out.join(format!("file-{number}"));
        number += 1;
        fs::write(&copy, &bytes).expect("the build directory is writable");
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        (
            format!("include_bytes!({:?})", copy.display().to_string()),
            hash.finish(),
        )
    };
    for (address, path) in files {
        if address.ends_with(".br") || address.ends_with(".gz") {
            continue;
        }
        let (identity, hash) = embed(path);
        let mut compressed = |ending: &str| match files.get(&format!("{address}{ending}")) {
            Some(path) => format!("Some({})", embed(path).0),
            None => "None".into(),
        };
        let (brotli, gzip) = (compressed(".br"), compressed(".gz"));
        writeln!(
            code,
            "    File {{ path: {address:?}, hash: {hash:#018x}, identity: {identity}, brotli: {brotli}, gzip: {gzip} }},"
        )
        .expect("a string takes everything");
    }
    code + "];\n"
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
