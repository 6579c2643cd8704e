//! Which files a program that is not ours may reach: landlock rules that hold for it and for all that it starts.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// What a kept program may reach of the file system. Everything may be read and run where nothing is said of reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfinedFiles {
    /// Directories and files that may be read and run; the whole file system if there are none.
    pub read: Vec<PathBuf>,
    /// Directories and files that may be read, run, written, made and removed.
    pub write: Vec<PathBuf>,
}

impl ConfinedFiles {
    /// As arguments of the subcommand that keeps the program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let one = |flag: &str, path: &PathBuf| {
            let mut argument = OsString::from(format!("{flag}="));
            argument.push(path);
            argument
        };
        let read = self.read.iter().map(|path| one("--read", path));
        let write = self.write.iter().map(|path| one("--write", path));
        read.chain(write).chain([OsString::from("--confined")]).collect()
    }

    /// Confines this process and all that it starts from now on, for good. An error when the kernel cannot: a program that
    /// was to be confined does not run otherwise.
    pub(crate) fn set(&self) -> io::Result<()> {
        platform::set(self).map_err(|reason| io::Error::other(format!("it cannot be confined: {reason}")))
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub fn set(_: &super::ConfinedFiles) -> Result<(), String> {
        Err("only Linux has landlock".into())
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::path::Path;

    use landlock::{
        ABI, Access as _, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated,
        RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    };

    use super::ConfinedFiles;

    /// The oldest rules that hold for what is promised; Linux 5.13 has them.
    const ABI_MIN: ABI = ABI::V1;
    /// The newest rules that are asked for: moving between directories, truncating.
    const ABI_MAX: ABI = ABI::V3;
    /// Devices that every program writes to.
    const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/urandom"];

    pub fn set(files: &ConfinedFiles) -> Result<(), String> {
        let rules = rules(files).map_err(|error| error.to_string())?;
        let status = rules.restrict_self().map_err(|error| error.to_string())?;
        match status.ruleset {
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
            RulesetStatus::NotEnforced => {
                Err("the kernel lacks landlock, or it is switched off at boot".into())
            }
        }
    }

    fn rules(files: &ConfinedFiles) -> Result<RulesetCreated, RulesetError> {
        let (all, read) = (AccessFs::from_all(ABI_MAX), AccessFs::from_read(ABI_MIN));
        let mut rules = Ruleset::default().handle_access(all)?.create()?;
        let root = [Path::new("/").to_owned()];
        let readable = match files.read.is_empty() {
            true => &root[..],
            false => &files.read,
        };
        for path in readable {
            rules = permit(rules, path, read)?;
        }
        // The keeper finds there what it has to end.
        rules = permit(rules, Path::new("/proc"), read)?;
        for path in &files.write {
            rules = permit(rules, path, all)?;
        }
        for device in DEVICES {
            rules = permit(rules, Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
        }
        Ok(rules)
    }

    /// Permits what is asked beneath a path. One that is not there permits nothing.
    fn permit(
        rules: RulesetCreated,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, RulesetError> {
        let Ok(opened) = PathFd::new(path) else {
            return Ok(rules);
        };
        let access = match path.is_dir() {
            true => access,
            false => access & AccessFs::from_file(ABI_MAX),
        };
        rules.add_rule(PathBeneath::new(opened, access))
    }
}
