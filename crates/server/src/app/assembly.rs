//! Puts the parts together in the order in which they can fail with the clearest words: settings,
//! sockets, files, database, and only then tasks.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use sluice_control::{Bounds, Control, ControlParts, ControlSettings, Signup};
use sluice_domain::{ApprovalId, CallRecord, SecurityEvent};
use sluice_limits::Counters;
use sluice_proxy::{CallLog, ProxyOptions, ProxyParts, ProxyState, Spans};
use sluice_store::ChangeFeed;
use sluice_upstream::{Upstream, UpstreamOptions};
use sluice_vault::Passwords;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tracing::{info, warn};
use url::Url;

use super::retention::Retention;
use super::routers::{self, Apps};
use super::stores::Stores;
use super::{Running, Stages, jobs, tools};
use crate::failure::{Failure, Outcome};
use crate::feed::{self, FeedState};
use crate::health::Watched;
use crate::listen::{self, Allowance};
use crate::ports::{ClockOf, SecurityQueue, StoredApprovals, StoredRoutes, ToolsQueue};
use crate::records::{self, Keeping, Writer, Writing};
use crate::settings::{NetworkArgs, Places, ServeArgs, SignupWord};
use crate::{clock, example, open};

/// Security events that wait to be written; what comes beyond that is only counted.
const SECURITY_QUEUE: usize = 2_000;
/// What of them waits in files, in bytes.
const SECURITY_SPILL: u64 = 8 * 1024 * 1024;
/// Approvals that a slow waiter may lag behind.
const APPROVAL_NEWS: usize = 1_024;

/// Bound sockets.
pub(super) struct Sockets {
    pub(super) main: TcpListener,
    pub(super) proxy: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
}

/// The logs on their way to the database.
struct Logs {
    calls: CallLog,
    writing: Writing,
    security: SecurityQueue,
    writers: Vec<Writer>,
}

/// What the tasks and routes are built on.
struct Ground {
    args: ServeArgs,
    places: Places,
    stores: Stores,
    upstream: Upstream,
    stages: Stages,
    tasks: JoinSet<()>,
    example: Option<SocketAddr>,
    logs: Logs,
}

pub(super) async fn assemble(args: ServeArgs, spans: Option<Arc<dyn Spans>>) -> Outcome<Running> {
    let sockets = Sockets::bind(&args.network).await?;
    let mut ground = Ground::lay(args).await?;
    let control = ground.control()?;
    if ground.stores.db.is_sqlite() {
        // Nobody else serves this file: what was on its way when the last process ended is lost.
        let lost = control.close_lost_releases(true).await.map_err(Failure::dependency)?;
        if lost > 0 {
            warn!(
                lost,
                "Approved calls were on their way at the last stop; whether they ran is unknown"
            );
        }
    }
    // Opened before the first route is cached: no change can fall in between.
    let changes = ChangeFeed::open(&ground.stores.db)
        .await
        .map_err(|error| open::explain(error, &ground.args.storage))?;
    let (decided, _) = broadcast::channel(APPROVAL_NEWS);
    let seen = ToolsQueue::default();
    let proxy = ground.proxy(&decided, &seen, spans);
    let state = FeedState::new();
    let reading = feed::run(
        changes,
        proxy.clone(),
        control.clone(),
        Arc::clone(&state),
        decided,
        ground.stages.draining.clone(),
    );
    ground.tasks.spawn(reading);
    let again = tools::read_again(control.clone(), seen, ground.stages.stopping.clone());
    ground.tasks.spawn(again);
    ground.spawn_jobs(&control, &proxy);
    let watched = ground.watched(state);
    let apps = routers::build(&ground.args, &ground.places, control, &proxy, &watched);
    ground.serve(sockets, apps, proxy)
}

impl Ground {
    async fn lay(args: ServeArgs) -> Outcome<Self> {
        let places = args.network.places();
        let stores = Stores::open(&args.storage).await?;
        let (stages, mut tasks) = (Stages::default(), JoinSet::new());
        let example = start_example(&args, &places, &stages, &mut tasks).await?;
        announce(&places);
        let upstream = Upstream::new(UpstreamOptions {
            allow_private: places.private_upstreams,
            ..UpstreamOptions::default()
        });
        let logs = Logs::start(&args, &stores, &stages);
        Ok(Self { args, places, stores, upstream, stages, tasks, example, logs })
    }

    fn control(&self) -> Outcome<Control> {
        let network = &self.args.network;
        let example_url = match self.example {
            Some(address) => Some(
                Url::parse(&format!("http://{address}/mcp"))
                    .context("the example server has no address")
                    .map_err(Failure::bad)?,
            ),
            None => None,
        };
        let settings = ControlSettings {
            public_url: network.public_url.clone(),
            proxy_public_url: network.proxy_url().clone(),
            signup: match network.signup {
                SignupWord::Open => Signup::Open,
                SignupWord::Invite => Signup::Invite,
                SignupWord::Closed => Signup::Closed,
            },
            example_url,
            bounds: Bounds::default(),
            providers: self.args.providers.read().map_err(Failure::settings)?,
        };
        let parts = ControlParts {
            db: self.stores.db.clone(),
            vault: Arc::clone(&self.stores.vault),
            upstream: Arc::new(self.upstream.clone()),
            counters: self.stores.counters.clone(),
            mailer: self.args.mail.mailer(&network.public_url)?,
            passwords: Passwords::new(),
            settings,
        };
        Ok(Control::new(parts, clock::function()))
    }

    fn proxy(
        &mut self,
        decided: &broadcast::Sender<ApprovalId>,
        seen: &ToolsQueue,
        spans: Option<Arc<dyn Spans>>,
    ) -> ProxyState {
        let (db, vault) = (self.stores.db.clone(), Arc::clone(&self.stores.vault));
        let approvals = Arc::new(StoredApprovals {
            db: db.clone(),
            vault: Arc::clone(&vault),
            clock: ClockOf(clock::function()),
            replica: uuid::Uuid::now_v7().to_string(),
            changed: decided.clone(),
            running: Arc::default(),
        });
        // Also while what is in flight ends.
        let stop = self.stages.draining.clone();
        self.tasks.spawn(jobs::say_what_runs(Arc::clone(&approvals), stop));
        ProxyState::new(ProxyParts {
            routes: Arc::new(StoredRoutes(db)),
            upstream: self.upstream.clone(),
            vault,
            counters: self.stores.counters.clone(),
            approvals: Some(approvals),
            calls: self.logs.calls.clone(),
            security: Arc::new(self.logs.security.clone()),
            tools_seen: Arc::new(seen.clone()),
            spans,
            clock: clock::function(),
            options: proxy_options(&self.args, &self.places),
        })
    }

    fn spawn_jobs(&mut self, control: &Control, proxy: &ProxyState) {
        let stop = self.stages.closing.clone();
        self.tasks.spawn(self.logs.security.clone().run(stop.clone()));
        self.tasks.spawn(jobs::often(control.clone(), proxy.clone(), stop.clone()));
        if self.args.network.role.serves_control() {
            self.tasks.spawn(jobs::notices(control.clone(), stop.clone()));
            self.tasks.spawn(jobs::catalogue(control.clone(), stop.clone()));
            let (pages, stopping) = (control.clone(), self.stages.stopping.clone());
            self.tasks.spawn(async move {
                stopping.cancelled().await;
                pages.end_streams();
            });
        }
        let (counters, file) = (self.stores.counters.clone(), self.args.storage.counters_file());
        if matches!(counters, Counters::Memory(_)) {
            self.tasks.spawn(jobs::save_counters(counters, file, stop.clone()));
        }
        let (db, retention) = (self.stores.db.clone(), Retention::of(&self.args.bounds));
        self.tasks.spawn(jobs::seldom(control.clone(), db, retention, stop));
    }

    fn watched(&self, feed: Arc<FeedState>) -> Watched {
        Watched {
            role: self.args.network.role,
            db: self.stores.db.clone(),
            counters: self.stores.counters.clone(),
            calls: self.logs.calls.clone(),
            writing: self.logs.writing.clone(),
            security: self.logs.security.clone(),
            log_unavailable: self.args.bounds.log_unavailable,
            feed,
            stale_routes: self.args.bounds.stale_routes,
            stopping: self.stages.stopping.clone(),
        }
    }

    fn serve(self, sockets: Sockets, apps: Apps, proxy: ProxyState) -> Outcome<Running> {
        let bounds = &self.args.bounds;
        let allowance = Allowance {
            connections: usize::try_from(bounds.max_connections).unwrap_or(usize::MAX),
            header_timeout: bounds.header_timeout,
            grace: bounds.shutdown_grace,
        };
        let address = listen::address(&sockets.main)?;
        let mut listeners = JoinSet::new();
        let mut serve = |listener, app| {
            let closing = self.stages.closing.clone();
            listeners.spawn(listen::serve(listener, app, allowance, closing));
        };
        serve(sockets.main, apps.main);
        if let (Some(listener), Some(app)) = (sockets.proxy, apps.proxy) {
            serve(listener, app);
        }
        if let (Some(listener), Some(app)) = (sockets.metrics, apps.metrics) {
            serve(listener, app);
        }
        Ok(Running {
            address,
            example: self.example,
            counters_file: self.args.storage.counters_file(),
            stages: self.stages,
            listeners,
            tasks: self.tasks,
            writers: self.logs.writers,
            proxy,
            counters: self.stores.counters,
            db: self.stores.db,
            notice: self.args.bounds.stop_notice,
            _locks: self.stores.locks,
        })
    }
}

impl Sockets {
    async fn bind(network: &NetworkArgs) -> Outcome<Self> {
        let main = listen::bind("--listen", network.listen).await?;
        let proxy = match network.proxy_listen {
            Some(address) => Some(listen::bind("--proxy-listen", address).await?),
            None => None,
        };
        let metrics = match network.metrics_listen {
            Some(address) => Some(listen::bind("--metrics-listen", address).await?),
            None => None,
        };
        Ok(Self { main, proxy, metrics })
    }
}

impl Logs {
    fn start(args: &ServeArgs, stores: &Stores, stages: &Stages) -> Self {
        let keeping = |most: u64| Keeping {
            directory: args.storage.data_dir.join("spill"),
            most,
            drain: stages.draining.clone(),
            grace: args.bounds.shutdown_grace,
        };
        let capacity = usize::try_from(args.bounds.log_queue).unwrap_or(usize::MAX);
        let most = args.bounds.log_spill.0 as u64;
        let (calls, received) = CallLog::new(capacity);
        let (writing, call_writer) =
            records::start::<CallRecord>(stores.db.clone(), received, keeping(most));
        let (sender, received) = mpsc::channel(SECURITY_QUEUE);
        let keeping = keeping(most.min(SECURITY_SPILL));
        let (_, security_writer) =
            records::start::<SecurityEvent>(stores.db.clone(), received, keeping);
        let security = SecurityQueue::new(sender);
        Self { calls, writing, security, writers: vec![call_writer, security_writer] }
    }
}

fn proxy_options(args: &ServeArgs, places: &Places) -> ProxyOptions {
    let (network, bounds) = (&args.network, &args.bounds);
    let origins = [&network.public_url, network.proxy_url()];
    ProxyOptions {
        dashboard_url: network.public_url.as_str().trim_end_matches('/').to_owned(),
        allowed_origins: origins.map(|url| url.origin().ascii_serialization()).to_vec(),
        loopback_origins: places.loopback,
        max_request_bytes: bounds.max_request.0,
        max_message_bytes: bounds.max_upstream_message.0,
        stale_routes: bounds.stale_routes,
        on_log_full: bounds.log_unavailable.into(),
        ..ProxyOptions::default()
    }
}

fn announce(places: &Places) {
    if places.private_upstreams {
        info!("Upstream servers may have private and loopback addresses");
    } else {
        info!(
            "Upstream servers must have public addresses; --allow-private-upstreams yes allows others"
        );
    }
}

async fn start_example(
    args: &ServeArgs,
    places: &Places,
    stages: &Stages,
    tasks: &mut JoinSet<()>,
) -> Outcome<Option<SocketAddr>> {
    if !places.example_server {
        return Ok(None);
    }
    let (listener, address) = example::listen(&args.storage.data_dir.join("example.port"))
        .await
        .context("the example server cannot listen")
        .map_err(|error| Failure::settings(error).remedy("`--example-server no` leaves it out"))?;
    let stop = stages.draining.clone();
    tasks.spawn(async move {
        let served = axum::serve(listener, example::router());
        // A call in flight through the proxy may still want its answer: this ends last.
        tokio::select! {
            _ = served => {}
            () = stop.cancelled() => {}
        }
    });
    info!(%address, "The example server runs");
    Ok(Some(address))
}
