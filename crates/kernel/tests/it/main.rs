//! What the kernel promises, checked through its front door.

mod json;
