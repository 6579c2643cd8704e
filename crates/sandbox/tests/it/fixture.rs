//! A worker as the gateway starts it, with things to try from inside: what code that has taken QuickJS over would try.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit, setsid, test_kill_process};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let without: Vec<String> = arguments.chunks(2).map(|pair| pair[1].clone()).collect();
    if without.iter().any(|name| name == "honesty") {
        lie()?;
        // Until the gateway closes its end or kills it.
        return io::copy(&mut io::stdin(), &mut io::sink()).map(drop);
    }
    if without.iter().any(|name| name == "ears") {
        lie()?;
        loop {
            std::thread::park();
        }
    }
    toolgate_sandbox::work_with_probe(&without, |what| {
        let (what, rest) = what.split_once(' ').unwrap_or((what, ""));
        match attempt(what, rest) {
            Ok(()) => "succeeded".into(),
            Err(error) => format!("refused: {error}"),
        }
    })
}

/// A worker that says whatever its code is, as hex.
fn lie() -> io::Result<()> {
    let mut head = [0; 4];
    io::stdin().read_exact(&mut head)?;
    let mut request = vec![0; u32::from_be_bytes(head) as usize];
    io::stdin().read_exact(&mut request)?;
    let request: serde_json::Value = serde_json::from_slice(&request)?;
    let code = request["run"]["code"].as_str().unwrap_or_default().as_bytes();
    let digit = |at: usize| char::from(code[at]).to_digit(16).expect("a hex digit") as u8;
    let bytes: Vec<u8> = (0..code.len() / 2)
        .map(|at| digit(2 * at) << 4 | digit(2 * at + 1))
        .collect();
    io::stdout().write_all(&bytes)?;
    io::stdout().flush()
}

fn attempt(what: &str, rest: &str) -> io::Result<()> {
    match what {
        "open" => std::fs::File::open(rest).map(drop),
        "create" => std::fs::File::create(rest).map(drop),
        "make-directory" => std::fs::create_dir(rest),
        "remove" => std::fs::remove_file(rest),
        "rename" => std::fs::rename(rest, format!("{rest}-renamed")),
        "link" => std::fs::hard_link(rest, format!("{rest}-linked")),
        "symlink" => std::os::unix::fs::symlink("/etc/passwd", rest),
        "list" => std::fs::read_dir(rest).map(drop),
        "connect" => TcpStream::connect(rest).map(drop),
        "listen" => TcpListener::bind("127.0.0.1:0").map(drop),
        "datagram" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "unix-connect" => UnixStream::connect(rest).map(drop),
        "unix-listen" => UnixListener::bind(rest).map(drop),
        "execute" => Command::new("/bin/true").spawn().map(drop),
        "thread" => std::thread::Builder::new().spawn(|| ()).map(drop),
        "look-for" => Ok(test_kill_process(process(rest))?),
        "signal" => Ok(kill_process(process(rest), Signal::CONT)?),
        "leave-group" => Ok(setsid().map(drop)?),
        "raise-files" => raise(Resource::Nofile),
        "raise-memory" => raise(Resource::As),
        "raise-cpu" => raise(Resource::Cpu),
        "change-root" => Ok(rustix::process::chroot("/")?),
        "change-directory" => std::env::set_current_dir("/tmp"),
        "rename-machine" => Ok(rustix::system::sethostname(b"taken")?),
        "environment" => match std::env::vars_os().count() {
            0 => Err(io::Error::other("there is nothing in it")),
            _ => Ok(()),
        },
        other => panic!("{other:?} is nothing to try"),
    }
}

fn process(id: &str) -> Pid {
    Pid::from_raw(id.parse().expect("a number")).expect("a process")
}

/// Takes the limit off.
fn raise(resource: Resource) -> io::Result<()> {
    let (current, maximum) = (None, None);
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
