//! Whether code is JavaScript, found where it is configured rather than at its first call. A worker reads it, never the
//! gateway itself.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::wire::{Request, Said};
use crate::work::RUN_SCRIPT;

/// Answers that are remembered; when there are more, all are forgotten.
const REMEMBERED_MAX: usize = 4_096;
/// Longest answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// Says whether code is JavaScript. Cheap to clone. Blocks for some milliseconds at a code's first time, so it is called
/// where that is permitted.
#[derive(Clone)]
pub struct SyntaxChecker {
    program: PathBuf,
    known: Arc<Mutex<HashMap<[u8; 32], Option<String>>>>,
}

impl SyntaxChecker {
    /// Has `program`, the gateway's own binary, read the code.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            known: Arc::default(),
        }
    }

    /// What is wrong with the code, with its line, if anything is. None as well when no process can tell: the first call
    /// will.
    pub fn problem(&self, code: &str) -> Option<String> {
        let hash = Sha256::digest(code).into();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known().get(&hash) {
            return answer.clone();
        }
        let told = self.ask(code)?;
        let answer = (!told.is_empty()).then_some(told);
        let mut known = known();
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(hash, answer.clone());
        answer
    }

    /// The worker's answer: empty when nothing is wrong. It ends by itself: nothing runs, and its CPU time is limited.
    fn ask(&self, code: &str) -> Option<String> {
        let mut child = Command::new(&self.program)
            .arg(RUN_SCRIPT.argument)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let answer = (|| {
            let request = serde_json::to_vec(&Request::Check(code.into())).ok()?;
            let mut to = to?;
            to.write_all(&u32::try_from(request.len()).ok()?.to_be_bytes())
                .ok()?;
            to.write_all(&request).ok()?;
            // It ends after this request.
            drop(to);
            let mut frame = Vec::new();
            from?.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut frame).ok()?;
            match Said::parse(frame.get(4..)?) {
                Ok(Said::Told(words)) => Some(words.to_owned()),
                Ok(_) | Err(_) => None,
            }
        })();
        // It has ended, or says more than it should.
        let _ = child.kill();
        let _ = child.wait();
        answer
    }
}
