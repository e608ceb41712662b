//! The workspace itself: its name and address, how much it has of what it may have, its end.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use sluice_control::{Admin, Control, ControlError, Viewer, WorkspaceCard, WorkspacePatch};
use sluice_web::{As, JsonBody, Problem, Queried};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show, change, delete))
}

/// How many there are, of how many.
#[derive(Debug, Serialize, ToSchema)]
struct Of {
    used: i64,
    most: i64,
}

#[derive(Debug, Serialize, ToSchema)]
struct WorkspaceBody {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "acme")]
    slug: String,
    name: String,
    suspended: bool,
    /// What the caller may do: `viewer`, `policy_manager` or `admin`.
    role: &'static str,
    servers: Of,
    policies: Of,
    /// Live ones.
    grants: Of,
    members: Of,
    /// Live ones.
    api_tokens: Of,
    /// Tool calls that the operator allows in a day (UTC); null: as many as the policies allow.
    calls_per_day: Option<u32>,
    /// The address of the identity provider that members must sign in by; null: any way. API tokens go on.
    required_provider: Option<String>,
}

impl WorkspaceBody {
    fn of(card: WorkspaceCard, required_provider: Option<String>) -> Self {
        let of = |(used, most)| Of { used, most };
        Self {
            id: card.id.to_string(),
            slug: card.slug,
            name: card.name,
            suspended: card.suspended,
            role: card.role.as_str(),
            servers: of(card.servers),
            policies: of(card.policies),
            grants: of(card.grants),
            members: of(card.members),
            api_tokens: of(card.api_tokens),
            calls_per_day: card.calls_per_day,
            required_provider,
        }
    }
}

/// What is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
struct ChangeWorkspace {
    #[serde(default)]
    name: Option<String>,
    /// The address; the old one goes on leading here.
    #[serde(default)]
    slug: Option<String>,
    /// The sign-in provider, by its name or address, that members must sign in by; null: any way. Some admin
    /// must be linked to it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    required_provider: Option<Option<String>>,
}

/// Tells `null` from absent.
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Confirmation {
    /// The workspace's slug, once more.
    #[serde(default)]
    confirm: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Deleted {
    /// When everything it owns is erased. Until then an admin can restore it, signed in at `/account`.
    erased_at: DateTime<Utc>,
}

/// The workspace, and how much it has of what it may have.
#[utoipa::path(
    get, path = "/workspaces/{ws}", operation_id = "show_workspace", tag = "Workspace", params(("ws" = String, Path)),
    responses((status = 200, body = WorkspaceBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
) -> Result<Json<WorkspaceBody>, Problem> {
    let required = control.required_provider(&viewer).await?.map(|required| required.issuer);
    Ok(Json(WorkspaceBody::of(control.workspace_card(&viewer).await?, required)))
}

/// Changes the name, the address, or how members sign in. Nothing is changed where one of them is refused.
#[utoipa::path(
    patch, path = "/workspaces/{ws}", operation_id = "change_workspace", tag = "Workspace", params(("ws" = String, Path)),
    request_body = ChangeWorkspace, responses((status = 204), Refusals),
)]
async fn change(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(body): JsonBody<ChangeWorkspace>,
) -> Result<StatusCode, Problem> {
    let patch = WorkspacePatch {
        name: body.name.as_deref(),
        slug: body.slug.as_deref(),
        provider: body.required_provider.as_ref().map(Option::as_deref),
    };
    control.change_workspace(&admin, patch).await.map_err(by_our_name)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The fault at the field as it is called here.
fn by_our_name(error: ControlError) -> ControlError {
    match error {
        ControlError::Invalid(mut faults) => {
            for fault in &mut faults {
                if fault.pointer == "/provider" {
                    "/required_provider".clone_into(&mut fault.pointer);
                }
            }
            ControlError::Invalid(faults)
        }
        ControlError::Conflict { code, pointer: Some("/provider"), detail } => {
            ControlError::Conflict { code, pointer: Some("/required_provider"), detail }
        }
        other => other,
    }
}

/// Deletes the workspace: its grants and API tokens stop at once. It can be restored for 14 days;
/// then everything it owns is erased.
#[utoipa::path(
    delete, path = "/workspaces/{ws}", operation_id = "delete_workspace", tag = "Workspace",
    params(("ws" = String, Path), Confirmation),
    responses((status = 200, body = Deleted), Refusals),
)]
async fn delete(
    State(control): State<Control>,
    As(admin): As<Admin>,
    Queried(query): Queried<Confirmation>,
) -> Result<Json<Deleted>, Problem> {
    let erased_at = control.delete_workspace(&admin, &query.confirm).await?;
    Ok(Json(Deleted { erased_at }))
}
