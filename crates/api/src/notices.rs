//! What a workspace and its members set about notifications.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use sluice_control::{Admin, Control, NoticeSettings, Viewer, span};
use sluice_web::{As, JsonBody, Problem};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::openapi::Refusals;

pub(crate) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(show, edit)).routes(routes!(prefer))
}

/// How notifications stand.
#[derive(Debug, Serialize, ToSchema)]
struct SettingsBody {
    /// After how many seconds admins are told of a call that nobody decided; `null`: never.
    escalate_after_seconds: Option<i64>,
    /// The operator set mail up.
    mail_available: bool,
    /// The token's maker gets mail about calls that wait for them.
    mail_me: bool,
}

impl From<NoticeSettings> for SettingsBody {
    fn from(settings: NoticeSettings) -> Self {
        Self {
            escalate_after_seconds: settings.escalate_after.map(|after| after.num_seconds()),
            mail_available: settings.mail,
            mail_me: settings.wants_mail,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EditSettings {
    /// `1m` to `7d`; `null`: never.
    #[schema(example = "15m")]
    escalate_after: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Preferences {
    mail_me: bool,
}

/// How notifications stand.
#[utoipa::path(
    get, path = "/workspaces/{ws}/notification-settings", operation_id = "show_notification_settings", tag = "Notifications",
    params(("ws" = String, Path)),
    responses((status = 200, body = SettingsBody), Refusals),
)]
async fn show(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
) -> Result<Json<SettingsBody>, Problem> {
    Ok(Json(control.notice_settings(&viewer).await?.into()))
}

/// Sets after how long admins are told of a call that nobody decided.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/notification-settings", operation_id = "edit_notification_settings", tag = "Notifications",
    params(("ws" = String, Path)), request_body = EditSettings,
    responses((status = 200, body = SettingsBody), Refusals),
)]
async fn edit(
    State(control): State<Control>,
    As(admin): As<Admin>,
    JsonBody(input): JsonBody<EditSettings>,
) -> Result<Json<SettingsBody>, Problem> {
    let after = input.escalate_after.map(|text| span("/escalate_after", &text)).transpose();
    control.set_escalation(&admin, after.map_err(Problem::invalid)?).await?;
    Ok(Json(control.notice_settings(&admin).await?.into()))
}

/// Sets whether the token's maker gets mail about calls that wait for them.
#[utoipa::path(
    patch, path = "/workspaces/{ws}/notification-preferences", operation_id = "edit_notification_preferences", tag = "Notifications",
    params(("ws" = String, Path)), request_body = Preferences,
    responses((status = 200, body = SettingsBody), Refusals),
)]
async fn prefer(
    State(control): State<Control>,
    As(viewer): As<Viewer>,
    JsonBody(input): JsonBody<Preferences>,
) -> Result<Json<SettingsBody>, Problem> {
    control.set_wants_mail(&viewer, input.mail_me).await?;
    Ok(Json(control.notice_settings(&viewer).await?.into()))
}
