//! Permissions and categories that have a name everywhere. A project may use words of its own beside them.

/// Permissions that a tool may need, as grants name them.
pub mod permission {
    /// Reads what was said in the space.
    pub const READ_CONVERSATION: &str = "READ_CONVERSATION";
    /// Reads what is known of the person whom the run works for.
    pub const READ_PROFILE: &str = "READ_PROFILE";
    /// Creates or changes content.
    pub const WRITE_CONTENT: &str = "WRITE_CONTENT";
    /// Has something said aloud.
    pub const VOICE_OUTPUT: &str = "VOICE_OUTPUT";
    /// Reads and writes files.
    pub const FILE_ACCESS: &str = "FILE_ACCESS";
    /// All of them.
    pub const ALL: [&str; 5] = [
        READ_CONVERSATION,
        READ_PROFILE,
        WRITE_CONTENT,
        VOICE_OUTPUT,
        FILE_ACCESS,
    ];
}

/// Categories of tools. Queries compare them without case.
pub mod category {
    /// Makes something new.
    pub const CREATION: &str = "creation";
    /// Explains or shows something to learn.
    pub const EDUCATIONAL: &str = "educational";
    /// Takes the person somewhere.
    pub const NAVIGATION: &str = "navigation";
    /// Tests what the person knows.
    pub const ASSESSMENT: &str = "assessment";
    /// Everything else.
    pub const UTILITY: &str = "utility";
    /// All of them.
    pub const ALL: [&str; 5] = [CREATION, EDUCATIONAL, NAVIGATION, ASSESSMENT, UTILITY];
}
