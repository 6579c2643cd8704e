//! A chat in a terminal.

use toolgate_client::{Client, SpaceId};

use super::screen::Screen;
use super::terminal::{Terminal, Typed};
use super::turn::{Confirmation, turn};
use super::{Chat, DEFAULT_URL};

const PROMPT: &str = "› ";
const HELP: &str = "\
/tools    list the local tools
/space    show the id of this conversation
/new      start a new conversation
/quit     leave; so do Ctrl-D, and Ctrl-C twice
Ctrl-C while the agent works cancels the run.";

/// Reads and sends messages until the person leaves.
pub async fn run(client: &Client, flags: &Chat) -> anyhow::Result<()> {
    let mut terminal = Terminal::open()?;
    let mut screen = Screen::new();
    let mut space = flags.space;
    let mut confirmation = Confirmation::new(flags.yes);
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
                None => screen.note("there is no space yet, send a message first"),
            },
            "/tools" => list_tools(&mut screen, client),
            command if command.starts_with('/') => {
                screen.error(format_args!("{command} is not a command, /help lists them"))
            }
            message => {
                let request = flags.request(message, space);
                match turn(client, request, &mut terminal, &mut screen, &mut confirmation).await {
                    Ok(began) => space = began.or(space),
                    Err(error) => screen.error(format_args!("{:#}", flags.explained(error))),
                }
            }
        }
    }
    farewell(&mut screen, flags, space);
    Ok(())
}

fn greet(screen: &mut Screen, client: &Client, flags: &Chat) {
    let agent = flags.agent.as_deref().unwrap_or("default");
    let local = match client.client_tool_definitions().len() {
        0 => String::new(),
        1 => ", with one local tool".into(),
        count => format!(", with {count} local tools"),
    };
    screen.note(format_args!(
        "{agent} at {}{local}. /help lists the commands.",
        flags.url
    ));
}

fn list_tools(screen: &mut Screen, client: &Client) {
    let tools = client.client_tool_definitions();
    if tools.is_empty() {
        screen.note("there are no local tools, --plugin and --mcp add some");
    }
    for tool in tools {
        screen.line(format_args!(
            "{}  {}",
            tool.name,
            super::screen::clean(&tool.description)
        ));
    }
}

fn farewell(screen: &mut Screen, flags: &Chat, space: Option<SpaceId>) {
    let Some(space) = space else { return };
    let url = match flags.url.as_str() {
        DEFAULT_URL => String::new(),
        url => format!(" --url {url}"),
    };
    screen.note(format_args!("continue with: toolgate chat --space {space}{url}"));
}
