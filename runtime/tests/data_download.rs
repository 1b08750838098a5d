//! Downloads, from a small server on this machine that behaves and misbehaves as told.
#![cfg(feature = "download")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plimsoll_runtime::data::Error;
use plimsoll_runtime::data::download::{Download, Progress, cache_folder};
use tempfile::TempDir;

/// How the server answers one request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// What was asked for, from where it was asked for.
    Good,
    /// The whole, whatever range was asked for.
    NoRanges,
    /// Ends the connection after so many bytes of the body.
    CutAfter(usize),
    /// As `CutAfter`, of a server that knows no ranges.
    NoRangesCutAfter(usize),
    /// Says nothing more after so many bytes.
    SilentAfter(usize),
    /// Another content of the same length.
    Wrong,
    /// Another part than was asked for.
    WrongRange,
    /// An error page.
    Status(u16),
}

/// A server that gives its answers in turn, the last one again and again.
struct Server {
    url: String,
    /// The range that each request asked for.
    requests: Arc<Mutex<Vec<Option<usize>>>>,
}

fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn md5() -> String {
    format!("{:x}", md5::compute(content()))
}

impl Server {
    fn new(answers: &[Answer]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/data.gz", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (requests.clone(), answers.to_vec());
        // Ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let number = seen.lock().unwrap().len();
                serve(stream.unwrap(), answers[number.min(answers.len() - 1)], &seen);
            }
        });
        Server { url, requests }
    }

    fn requests(&self) -> Vec<Option<usize>> {
        self.requests.lock().unwrap().clone()
    }

    fn download(&self) -> Download {
        Download::new([self.url.as_str()], &md5()).progress(Progress::Hidden).patience(Duration::from_millis(500))
    }
}

fn serve(mut stream: TcpStream, answer: Answer, seen: &Mutex<Vec<Option<usize>>>) {
    let mut from = None;
    for line in BufReader::new(stream.try_clone().unwrap()).lines() {
        let line = line.unwrap().to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = Some(range.trim_end_matches('-').parse().unwrap());
        }
        if line.is_empty() {
            break;
        }
    }
    seen.lock().unwrap().push(from);
    let content = if let Answer::Wrong = answer { vec![7; content().len()] } else { content() };
    let mut start = match answer {
        Answer::NoRanges | Answer::NoRangesCutAfter(_) => 0,
        _ => from.unwrap_or(0),
    };
    let head = match answer {
        Answer::Status(status) => format!("{status} Sorry"),
        _ if start > 0 && start >= content.len() => "416 Range Not Satisfiable".into(),
        _ if start > 0 => "206 Partial Content".into(),
        _ => "200 OK".into(),
    };
    if let Answer::WrongRange = answer {
        start /= 2;
    }
    let body = content.get(start..).filter(|_| head.starts_with('2')).unwrap_or(b"<html>no</html>");
    let range = match head.starts_with("206") {
        true => format!("Content-Range: bytes {start}-{}/{}\r\n", content.len() - 1, content.len()),
        false => String::new(),
    };
    let head = format!("HTTP/1.1 {head}\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    // The client may have hung up.
    let _ = stream.write_all(head.as_bytes());
    let sent = match answer {
        Answer::CutAfter(bytes) | Answer::NoRangesCutAfter(bytes) | Answer::SilentAfter(bytes) => bytes.min(body.len()),
        _ => body.len(),
    };
    let _ = stream.write_all(&body[..sent]).and_then(|()| stream.flush());
    if let Answer::SilentAfter(_) = answer {
        thread::sleep(Duration::from_millis(800));
    }
}

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new/folders/data.gz");
    (folder, path)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The file is there, and nothing beside it.
fn check(path: &Path) {
    assert!(fs::read(path).unwrap() == content());
    assert_eq!(names(path), ["data.gz"]);
}

#[test]
fn whole() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
    server.download().to(&path).unwrap();
    check(&path);
    // It is there: no request more.
    server.download().to(&path).unwrap();
    assert_eq!(server.requests(), [None]);
    // A damaged file is fetched again.
    fs::write(&path, "damaged").unwrap();
    server.download().to(&path).unwrap();
    check(&path);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn broken_connections_are_resumed() {
    let cuts = [Answer::CutAfter(100_000), Answer::CutAfter(50_000), Answer::SilentAfter(50_000), Answer::Good];
    let (server, (_folder, path)) = (Server::new(&cuts), place());
    server.download().to(&path).unwrap();
    check(&path);
    assert_eq!(server.requests(), [None, Some(100_000), Some(150_000), Some(200_000)]);
}

#[test]
fn a_later_call_continues() {
    let (server, (_folder, path)) = (Server::new(&[Answer::CutAfter(70_000), Answer::Status(404)]), place());
    let text = server.download().to(&path).unwrap_err().to_string();
    assert!(text.contains("70000 bytes are kept"), "{text}");
    assert_eq!(names(&path), ["data.gz.part"]);
    let server = Server::new(&[Answer::Good]);
    server.download().to(&path).unwrap();
    check(&path);
    assert_eq!(server.requests(), [Some(70_000)]);
}

#[test]
fn servers_without_ranges() {
    for answer in [Answer::NoRanges, Answer::WrongRange] {
        let (server, (_folder, path)) = (Server::new(&[Answer::CutAfter(1000), answer, Answer::Good]), place());
        server.download().to(&path).unwrap();
        check(&path);
        assert_eq!(server.requests()[1], Some(1000));
    }
    // Never whole, never further: an end after a few tries.
    let (server, (_folder, path)) = (Server::new(&[Answer::NoRangesCutAfter(9000)]), place());
    let text = server.download().to(&path).unwrap_err().to_string();
    assert!(text.contains("help: check the network and try again"), "{text}");
    assert!(!path.exists() && server.requests().len() <= 5);
}

/// The process ended between the last byte and the file's own name.
#[test]
fn a_complete_part() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path.with_extension("gz.part"), content()).unwrap();
    server.download().to(&path).unwrap();
    check(&path);
    assert_eq!(server.requests(), [Some(300_000)]);
}

/// What is left of another version is given up.
#[test]
fn a_wrong_part() {
    for length in [1000, 300_000, 400_000] {
        let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.with_extension("gz.part"), vec![1; length]).unwrap();
        server.download().to(&path).unwrap();
        check(&path);
        assert_eq!(server.requests(), [Some(length), None]);
    }
}

#[test]
fn wrong_checksum() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Wrong]), place());
    let error = server.download().to(&path).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Download { .. }) && text.starts_with(&server.url), "{text}");
    assert!(text.contains("the file has the MD5 sum ") && text.contains(&md5()), "{text}");
    assert!(text.contains("data.gz.part") && text.contains("put it at"), "{text}");
    // Nothing wrong is kept.
    assert!(!path.exists());
    assert_eq!(fs::metadata(path.with_extension("gz.part")).unwrap().len(), 0);
}

#[test]
fn error_pages() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Status(404)]), place());
    let text = server.download().to(&path).unwrap_err().to_string();
    assert!(text.contains("the server answers 404 Not Found") && text.contains(&server.url), "{text}");
    assert_eq!(server.requests().len(), 1);
    // What may pass is tried again.
    let (server, (_folder, path)) = (Server::new(&[Answer::Status(503), Answer::Good]), place());
    server.download().to(&path).unwrap();
    check(&path);
}

#[test]
fn the_next_address() {
    let (bad, good) = (Server::new(&[Answer::Status(403)]), Server::new(&[Answer::Good]));
    let (_folder, path) = place();
    let urls = [bad.url.as_str(), good.url.as_str()];
    Download::new(urls, &md5().to_uppercase()).progress(Progress::Hidden).to(&path).unwrap();
    check(&path);
    // All failures are told.
    fs::remove_file(&path).unwrap();
    let gone = Server::new(&[Answer::Status(410)]);
    let urls = [bad.url.as_str(), gone.url.as_str()];
    let text = Download::new(urls, &md5()).progress(Progress::Hidden).to(&path).unwrap_err().to_string();
    assert!(
        text.contains("410 Gone") && text.contains(&format!("before, {}: the server answers 403", bad.url)),
        "{text}"
    );
}

#[test]
fn no_server() {
    let (_folder, path) = place();
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/data.gz");
    let text = Download::new([&url], &md5()).progress(Progress::Hidden).to(&path).unwrap_err().to_string();
    assert!(text.starts_with(&url) && text.contains("help: check the network"), "{text}");
    let nowhere: [&str; 0] = [];
    assert!(Download::new(nowhere, "").to(&path).unwrap_err().to_string().contains("no address"));
}

#[test]
fn two_at_once() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| server.download().to(&path).unwrap());
        }
    });
    check(&path);
    assert_eq!(server.requests().len(), 1);
}

/// A device that is always full stands in for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn full_disk() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", path.with_extension("gz.part")).unwrap();
    let download = Download::new([server.url.as_str()], &md5()).progress(Progress::Hidden);
    let text = download.to(&path).unwrap_err().to_string();
    assert!(text.contains("data.gz.part: can't write") && text.contains("help: the disk is full"), "{text}");
}

#[test]
fn a_folder_in_the_way() {
    let (server, (_folder, path)) = (Server::new(&[Answer::Good]), place());
    fs::create_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
    fs::write(path.parent().unwrap(), "a file").unwrap();
    let text = server.download().to(&path).unwrap_err().to_string();
    assert!(text.contains("new/folders"), "{text}");
    assert!(server.requests().is_empty());
}

/// The only test that reads the variable, and none sets it: a process has one environment.
#[test]
fn cache() {
    let folder = cache_folder().unwrap();
    match std::env::var_os("PLIMSOLL_DATA").filter(|folder| !folder.is_empty()) {
        Some(chosen) => assert_eq!(folder, PathBuf::from(chosen)),
        None => assert!(folder.ends_with("plimsoll") && folder.is_absolute()),
    }
}
