//! The one way out: connections that cannot be led inside, upstream credentials, reading a server's
//! tools, and mail. Follows no redirect, uses no proxy, repeats nothing that may have run.

mod addresses;
mod check;
mod connect;
mod counted;
mod fetch;
mod get;
mod hash;
mod idle;
mod mail;
mod post;
mod read;
mod resolve;
mod send;
mod target;

pub use check::UrlProblem;
pub use counted::Connections;
pub use fetch::Fetch;
pub use get::{Get, GetError, Got};
pub use hash::definition_hash;
pub use idle::{IdleBody, IdleError};
pub use mail::{Mail, MailError, MailSettingError, Mailer, MailerOptions};
pub use post::{Post, Posted};
pub use read::{ReadError, ToolsRead};
pub use resolve::{Dial, Resolve};
pub use send::{Prepared, SendError, Upstream, UpstreamOptions};
pub use target::{Target, TargetError};

#[cfg(test)]
mod documented {
    use sluice_testkit::bounds::{grouped, hold, time};

    use crate::read::{MAX_PAGES, MAX_TOOLS};
    use crate::send::{MAX_IDLE_CONNECTIONS, POOL_IDLE};

    #[test]
    fn the_protocol_page_tells_the_bounds_of_the_way_out() {
        hold(
            "upstream",
            &[
                (
                    "tools of a server; pages of its list",
                    format!("{}; {}", grouped(MAX_TOOLS), grouped(MAX_PAGES)),
                ),
                (
                    "idle connections kept to a server; for how long",
                    format!("{}; {}", grouped(MAX_IDLE_CONNECTIONS), time(POOL_IDLE)),
                ),
            ],
        );
    }
}
