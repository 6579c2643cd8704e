//! A conversation in a terminal.

use toolgate_client::{Client, SpaceId};

use super::Chat;
use super::screen::Screen;
use super::terminal::{Terminal, Typed};
use super::turn::{Asking, turn};

const PROMPT: &str = "› ";
const HELP: &str = "\
/tools    the tools that were brought
/space    where this conversation is kept
/new      begin another conversation
/quit     leave; so do Ctrl-D, and Ctrl-C twice
Ctrl-C while the agent works stops the agent.";

/// Takes messages until the person leaves.
pub async fn run(client: &Client, flags: &Chat) -> anyhow::Result<()> {
    let mut terminal = Terminal::open()?;
    let mut screen = Screen::new();
    let mut space = flags.space;
    let mut asking = Asking::new(flags.yes);
    let mut interrupted = false;
    greet(&mut screen, client, flags);
    loop {
        let line = match terminal.message(PROMPT)? {
            Typed::End => break,
            Typed::Interrupt if interrupted => break,
            Typed::Interrupt => {
                interrupted = true;
                screen.note("Ctrl-C again to leave");
                continue;
            }
            Typed::Line(line) => line,
        };
        interrupted = false;
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => break,
            "/new" => space = None,
            "/help" => screen.note(HELP),
            "/space" => match space {
                Some(space) => screen.line(space),
                None => screen.note("nothing has been said yet"),
            },
            "/tools" => list_tools(&mut screen, client),
            command if command.starts_with('/') => {
                screen.error(format_args!("{command}? /help lists what there is"))
            }
            message => {
                let request = flags.request(message, space);
                match turn(client, request, &mut terminal, &mut screen, &mut asking).await {
                    Ok(began) => space = began.or(space),
                    Err(error) => screen.error(format_args!("{:#}", flags.explained(error))),
                }
            }
        }
    }
    farewell(&mut screen, space);
    Ok(())
}

fn greet(screen: &mut Screen, client: &Client, flags: &Chat) {
    let agent = flags.agent.as_deref().unwrap_or("default");
    let brought = match client.client_tool_definitions().len() {
        0 => String::new(),
        1 => ", with one tool from here".into(),
        count => format!(", with {count} tools from here"),
    };
    screen.note(format_args!("{agent} at {}{brought}. /help helps.", flags.url));
}

fn list_tools(screen: &mut Screen, client: &Client) {
    let tools = client.client_tool_definitions();
    if tools.is_empty() {
        screen.note("none were brought; --plugin and --mcp bring some");
    }
    for tool in tools {
        screen.line(format_args!(
            "{}  {}",
            tool.name,
            super::screen::clean(&tool.description)
        ));
    }
}

fn farewell(screen: &mut Screen, space: Option<SpaceId>) {
    if let Some(space) = space {
        screen.note(format_args!("go on with: toolgate chat --space {space}"));
    }
}
