//! A workspace that asks for an identity provider: who may come in, who goes on, and that its admin is
//! never locked out.

use secrecy::ExposeSecret as _;
use sluice_control::{Admin, EventFilter, Page, Signup, Viewer, WorkspacePatch};
use sluice_domain::Role;
use sluice_store::Db;
use sluice_testkit::on_both;

use crate::common::{PASSWORD, code, complete, origin, secret};
use crate::operator::operator;
use crate::providers::{entered, link, sign_in, vouched};

const ANN: &str = "ann@example.test";

on_both! {
    async fn a_workspace_lets_in_who_came_by_its_provider_alone(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let admin = world.workspace("Acme", ANN).await;
        let by_password = admin.actor.clone();
        let viewer: Viewer = world.member(&admin, "vic@example.test", Role::Viewer).await;
        assert_eq!(world.control.required_provider(&admin).await.expect("answers"), None);
        // Nobody asks for what they do not come by themselves.
        assert_eq!(code(world.control.require_provider(&admin, Some("acme")).await), "come_by_it_first");
        assert_eq!(code(world.control.require_provider(&admin, Some("nobody")).await), "unknown_provider");
        link(&world, &issuer, &by_password).await.expect("links");
        let login = entered(sign_in(&world, &issuer).await);
        let actor = world.actor(&login).await;
        let admin: Admin = world.control.enter(&actor, "acme").await.expect("enters");
        world.control.require_provider(&admin, Some("acme")).await.expect("asks for it");
        let required = world.control.required_provider(&admin).await.expect("answers").expect("is set");
        assert_eq!((required.issuer, required.provider), (issuer.url(), Some(("acme".to_owned(), "Acme".to_owned()))));
        // Sessions that are open and came another way are shut out at once, admins' too.
        for shut_out in [&by_password, &viewer.actor] {
            let refused = world.control.enter::<Viewer>(shut_out, "acme").await;
            assert_eq!(code(refused), "provider_required");
        }
        let again = complete(world.control.log_in(ANN, secret(PASSWORD), &origin()).await.expect("the account itself is open"));
        let again = world.actor(&again).await;
        assert_eq!(code(world.control.enter::<Viewer>(&again, "acme").await), "provider_required");
        world.control.enter::<Admin>(&actor, "acme").await.expect("came by it");
        // A stranger learns nothing more than before.
        let eve = world.person("eve@example.test").await;
        assert_eq!(code(world.control.enter::<Viewer>(&eve, "acme").await), "not_found");
        // A program goes on.
        let api = operator(&world).api_token(ANN, "acme", Role::Admin, false).await.expect("makes");
        let token = world.control.who_by_api_token(api.token.expose_secret(), "").await.expect("answers").expect("known");
        let by_token: Admin = world.control.enter(&token, "acme").await.expect("goes on");
        world.control.require_provider(&by_token, None).await.expect("lifts it");
        world.control.enter::<Viewer>(&viewer.actor, "acme").await.expect("in any way again");
        let filter = EventFilter { action: Some("workspace.require_provider".to_owned()), ..EventFilter::default() };
        let events = world.control.admin_events(&admin, &filter, Page::first(9)).await.expect("lists").items;
        assert_eq!((events.len(), &events[1].after), (2, &Some(serde_json::json!({"issuer": issuer.url()}))));
    }

    async fn a_token_asks_for_a_provider_only_where_an_admin_is_linked_to_it(db: Db) {
        let (world, issuer) = vouched(db, Signup::Open).await;
        let admin = world.workspace("Acme", ANN).await;
        let viewer: Viewer = world.member(&admin, "vic@example.test", Role::Viewer).await;
        let api = operator(&world).api_token(ANN, "acme", Role::Admin, false).await.expect("makes");
        let token = world.control.who_by_api_token(api.token.expose_secret(), "").await.expect("answers").expect("known");
        let by_token: Admin = world.control.enter(&token, "acme").await.expect("enters");
        // Who is no admin leaves no admin in.
        link(&world, &issuer, &viewer.actor).await.expect("links");
        let patch = WorkspacePatch { name: Some("Other"), provider: Some(Some("acme")), ..WorkspacePatch::default() };
        assert_eq!(code(world.control.change_workspace(&by_token, patch).await), "come_by_it_first");
        let card = world.control.workspace_card(&world.control.enter::<Admin>(&admin.actor, "acme").await.expect("open")).await;
        assert_eq!(card.expect("answers").name, "Acme", "all or nothing");
        world.control.set_role(&admin, viewer.actor.user, Role::Admin).await.expect("promotes");
        world.control.change_workspace(&by_token, patch).await.expect("an admin is linked");
        assert_eq!(code(world.control.enter::<Viewer>(&admin.actor, "acme").await), "provider_required");
    }

    async fn a_provider_that_is_gone_is_lifted_by_the_operator(db: Db) {
        let (mut world, issuer) = vouched(db, Signup::Open).await;
        let login = entered(sign_in(&world, &issuer).await);
        let actor = world.actor(&login).await;
        world.control.create_workspace(&actor, "Acme").await.expect("makes");
        let admin: Admin = world.control.enter(&actor, "acme").await.expect("enters");
        let viewer: Viewer = world.member(&admin, "vic@example.test", Role::Viewer).await;
        world.control.require_provider(&admin, Some("acme")).await.expect("asks for it");
        world.control = world.vouched_by(Vec::new());
        let refused = world.control.enter::<Viewer>(&viewer.actor, "acme").await.expect_err("still asked for");
        assert!(refused.to_string().contains("lift-provider"), "{refused}");
        assert_eq!(code(operator(&world).lift_provider("nowhere").await), "not_found");
        operator(&world).lift_provider("acme").await.expect("lifts it");
        world.control.enter::<Viewer>(&viewer.actor, "acme").await.expect("in any way again");
    }
}
