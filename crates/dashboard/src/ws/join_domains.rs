//! On `/w/{ws}/settings`: e-mail domains whose people may join by themselves.

use axum::extract::Path;
use axum::response::Response;
use sluice_control::{Admin, JoinDomainView};
use sluice_domain::{JoinDomainId, Role};
use sluice_web::Form;

use super::Nothing;
use super::settings::{Input, page};
use crate::desk::{Answer, Desk, absent, refuse};
use crate::faults::Faults;
use crate::flash;
use crate::ui::{Field, Select};

/// The part of the settings page.
#[derive(Debug)]
pub(super) struct JoinPart {
    pub(super) rows: Vec<JoinDomainView>,
    pub(super) domain: Field,
    pub(super) role: Select,
}

pub(super) async fn part(
    desk: &Desk<Admin>,
    input: &Input,
    faults: &Faults,
) -> Result<JoinPart, Response> {
    let rows = desk.control.join_domains(&desk.who).await.map_err(refuse)?;
    let own = desk.access().actor.email.rsplit_once('@').map_or("", |(_, domain)| domain);
    let roles = [(Role::Viewer, "Viewer"), (Role::PolicyManager, "Policy manager")];
    let roles = roles.map(|(role, word)| (role.as_str(), word));
    let chosen = if input.role.is_empty() { Role::Viewer.as_str() } else { &input.role };
    let mut role = Select::new("role", "They become", roles, chosen);
    role.error = faults.at("/role");
    let domain = Field::text("domain", "E-mail domain")
        .value(input.domain.clone())
        .hint(format!(
            "Yours is `{own}`. Only an admin whose confirmed address is of a domain adds it."
        ))
        .complete("off")
        .required()
        .max(253)
        .error(faults.at("/domain"));
    Ok(JoinPart { rows, domain, role })
}

pub(super) async fn add(desk: Desk<Admin>, Form(input): Form<Input>) -> Answer {
    let Ok(role) = input.role.parse::<Role>() else {
        return page(desk, input, &Faults::one("/role", "Choose a role.")).await;
    };
    match desk.control.add_join_domain(&desk.who, &input.domain, role).await {
        Ok(made) => {
            let text = format!("People with a confirmed address at `{}` may join.", made.domain);
            Ok(flash::done(&desk.path("/settings"), &text))
        }
        Err(error) => {
            let faults = Faults::of(error)?;
            page(desk, input, &faults).await
        }
    }
}

pub(super) async fn remove(
    desk: Desk<Admin>,
    Path((_, id)): Path<(String, String)>,
    Form(Nothing {}): Form<Nothing>,
) -> Answer {
    let id: JoinDomainId = id.parse().map_err(|_| absent("e-mail domain"))?;
    desk.control.remove_join_domain(&desk.who, id).await.map_err(refuse)?;
    Ok(flash::done(&desk.path("/settings"), "Took the domain away. Who joined by it stays."))
}
