//! A labelled set of our own: names and descriptions as tool authors write them, made up for this test.
//! The larger sets with vendors' labels are measured by `cargo xtask risk-report`.

use sluice_domain::{Category, Severity, ToolDefinition};
use sluice_risk::{Direction, ModifierKind, Signal, classify};

fn tool(name: &str, description: &str) -> ToolDefinition {
    serde_json::from_value(serde_json::json!({"name": name, "description": description}))
        .expect("a tool")
}

fn with_schema(name: &str, schema: &serde_json::Value) -> ToolDefinition {
    serde_json::from_value(serde_json::json!({"name": name, "inputSchema": schema}))
        .expect("a tool")
}

const READ: &[(&str, &str)] = &[
    ("get_invoice_by_id", "Returns one invoice."),
    ("searchOrders", "Searches orders by customer."),
    ("list-refunds", "Lists refunds."),
    ("order_status", "Checks where an order is."),
    ("payment_history", "Gets past payments."),
    ("board_insights", "Shows insights about a board."),
    ("user_list", "Lists users."),
    ("firewall_rule_show", "Shows a firewall rule."),
    ("open_nodes", "Opens nodes by their names."),
    ("resolve_package_name", "Resolves a package name to its identifier."),
    ("take_screenshot", "Takes a screenshot of the page."),
    ("pdf_to_markdown", "Converts a PDF to Markdown."),
    ("calculator", "Evaluates a mathematical expression."),
    ("add", "Adds two numbers."),
    ("getuserinfo", ""),
    ("whoami", ""),
    ("metrics.query", "Executes a PromQL query and returns samples."),
    ("find_customers", "Runs a search over customers."),
    ("lint", "Lints the code it is given."),
    ("buscar_productos", "Busca productos por nombre."),
    ("consultar_saldo", "Consulta o saldo da conta."),
    ("lire_fichier", "Lit un fichier."),
    ("datei_lesen", "Liest eine Datei."),
    ("查询天气", "查询某个城市的天气"),
    ("データ取得", "データを取得します"),
    ("получить_список", "Возвращает список файлов."),
];

const WRITE: &[(&str, &str)] = &[
    ("create_issue", "Creates an issue."),
    ("createorupdateitem", ""),
    ("updaterecord", ""),
    ("upsert_contact", "Adds or changes a contact."),
    ("mark_all_notifications_read", "Marks all notifications as read."),
    ("remove_label", "Removes a label from an issue."),
    ("unfollow_topic", "Stops following a topic."),
    ("turn_on_light", "Turns on a light."),
    ("send_email", "Sends an e-mail."),
    ("report_bug", "Reports a bug to the maintainers."),
    ("get_or_create_channel", "Gets a channel, or creates it if it is missing."),
    ("find_and_replace", "Finds a text and replaces it everywhere."),
    ("database_snapshot_create", "Creates a snapshot of a database."),
    ("resolve_thread", "Resolves a review thread."),
    ("transfer_ownership", "Transfers a repository to another owner."),
    ("charge_battery", "Charges the battery of the robot."),
    ("git_checkout", "Switches to a branch."),
    ("manage_labels", "Manages labels."),
    ("crear_pedido", "Crea un pedido."),
    ("envoyer_message", "Envoie un message."),
    ("datei_hochladen", "Lädt eine Datei hoch."),
    ("发送邮件", "发送一封邮件"),
    ("записать_файл", "Записывает файл."),
];

const EXECUTE: &[(&str, &str)] = &[
    ("executePython", "Execute Python code in a secure cloud sandbox"),
    ("execute_code", "Runs code."),
    ("run_command", "Runs a command in the terminal."),
    ("shell", ""),
    ("execute_query", "Execute a SQL query and return the rows."),
    ("browser_evaluate", "Evaluates JavaScript in the page."),
    ("terminal.exec", "Executes in the terminal."),
    ("runquery", ""),
    ("deploy_function", "Deploys a function."),
    ("restart_service", "Restarts a service."),
    ("kill_process", "Kills a process."),
    ("invoke_lambda", "Invokes a function."),
    ("ejecutar_comando", "Ejecuta un comando."),
    ("code_ausführen", "Führt Code aus."),
    ("执行代码", "执行 Python 代码"),
    ("コード実行", "コードを実行する"),
    ("выполнить_код", "Выполняет код."),
];

const DESTRUCTIVE: &[(&str, &str)] = &[
    ("delete_repo", "Deletes a repository."),
    ("removeuser", ""),
    ("drop_table", "Drops a table."),
    ("purge_cache", "Purges everything."),
    ("confirm_delete_account", "Confirms the deletion of an account."),
    ("factory_reset", "Resets the device to how it left the factory."),
    ("cleanup", "Deletes old builds."),
    ("policies.remove", "Removes a policy."),
    ("get_report", "Permanently deletes the report."),
    ("borrar_archivo", "Borra un archivo."),
    ("supprimer_fichier", "Supprime un fichier."),
    ("benutzer_löschen", "Löscht einen Benutzer."),
    ("excluir_cliente", "Exclui um cliente."),
    ("删除文件", "删除文件"),
    ("ファイル削除", "ファイルを削除する"),
    ("удалить_файл", "Удаляет файл."),
    ("dеlete_file", "The name has a Cyrillic letter."),
    ("de\u{200b}lete_file", ""),
];

const FINANCIAL: &[(&str, &str)] = &[
    ("send_money", "Sends money to a phone number."),
    ("create_payment_link", "Creates a link that customers pay through."),
    ("issue_refund", "Refunds a payment."),
    ("place_limit_order", "Places a limit order on the exchange."),
    ("add_transfer", "Transfers money between two accounts."),
    ("swap_tokens", "Swaps tokens on an exchange."),
    ("charge_card", "Charges a card."),
    ("withdraw", "Withdraws funds."),
    ("order_pizza", "Orders a pizza."),
    ("pagar_factura", "Paga una factura."),
    ("rechnung_bezahlen", "Bezahlt eine Rechnung."),
    ("支付订单", "支付一个订单"),
    ("оплатить_счет", "Оплачивает счёт."),
];

#[test]
fn our_own_set_is_rated_as_labelled() {
    let sets = [
        (Category::Read, READ),
        (Category::Write, WRITE),
        (Category::Execute, EXECUTE),
        (Category::Destructive, DESTRUCTIVE),
        (Category::Financial, FINANCIAL),
    ];
    let mut wrong = Vec::new();
    for (label, rows) in sets {
        for (name, description) in rows {
            let rating = classify(&tool(name, description));
            if rating.category != label {
                wrong.push(format!(
                    "{name}: {label}, rated {} by {:?}",
                    rating.category, rating.reasons
                ));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_is_not_recognised_is_not_safe() {
    for name in ["", "zorp", "do_magic", "helper", "x", "___", "🦀", "asset_tool"] {
        let rating = classify(&tool(name, ""));
        assert!(rating.is_unknown(), "{name}");
        assert_eq!(
            (rating.category, rating.severity),
            (Category::Write, Severity::Medium),
            "{name}"
        );
        assert_eq!(rating.reasons.len(), 1, "{name}");
    }
}

#[test]
fn the_tools_the_project_began_with_keep_their_rating() {
    for (name, description) in [
        ("executePython", "Execute Python code in a secure cloud sandbox"),
        ("execute_code", "Runs code safely. This tool is read-only and harmless."),
    ] {
        for schema in [
            serde_json::json!({}),
            serde_json::json!({"type": "object", "properties": {"code": {"type": "string"}}}),
        ] {
            let mut tool = tool(name, description);
            tool.input_schema = Some(schema);
            let rating = classify(&tool);
            assert_eq!(
                (rating.category, rating.severity),
                (Category::Execute, Severity::High),
                "{name}"
            );
        }
    }
}

#[test]
fn parameters_speak_where_names_are_silent() {
    let text = serde_json::json!({"type": "string"});
    for (properties, category, signal) in [
        (serde_json::json!({"code": text}), Category::Execute, Signal::FreeformCode),
        (serde_json::json!({"command": text}), Category::Execute, Signal::Command),
        (serde_json::json!({"sql": text}), Category::Execute, Signal::RawSql),
        (
            serde_json::json!({"amount": {"type": "number"}, "currency": text, "to": text}),
            Category::Financial,
            Signal::Money,
        ),
        (
            serde_json::json!({"action": {"type": "string", "enum": ["list", "create", "delete"]}, "path": text}),
            Category::Destructive,
            Signal::FilePath,
        ),
    ] {
        let rating = classify(&with_schema(
            "helper",
            &serde_json::json!({"type": "object", "properties": properties}),
        ));
        assert_eq!(rating.category, category, "{properties}");
        assert!(rating.signals.contains(&signal), "{properties}: {:?}", rating.signals);
        assert!(rating.reasons[0].place.starts_with("args."), "{properties}");
    }
    let country =
        serde_json::json!({"code": {"type": "string", "description": "Two-letter country code."}});
    let rating = classify(&with_schema(
        "get_country",
        &serde_json::json!({"type": "object", "properties": country}),
    ));
    assert_eq!(
        (rating.category, rating.signals.contains(&Signal::FreeformCode)),
        (Category::Read, false)
    );
}

#[test]
fn any_request_to_any_address_is_execution() {
    let schema = serde_json::json!({"type": "object", "properties": {
        "method": {"type": "string", "enum": ["GET", "POST", "DELETE"]}, "path": {"type": "string"}}});
    assert_eq!(classify(&with_schema("api_request", &schema)).category, Category::Execute);
    let reading = serde_json::json!({"type": "object", "properties": {
        "method": {"type": "string", "enum": ["GET", "HEAD"]}, "path": {"type": "string"}}});
    assert_eq!(classify(&with_schema("get_page", &reading)).category, Category::Read);
}

#[test]
fn modifiers_move_the_severity_by_one_step_and_are_shown() {
    for (name, description, severity, kind) in [
        (
            "write_file",
            "Writes a file and overwrites what is there.",
            Severity::High,
            ModifierKind::Overwrites,
        ),
        ("send_email", "Sends an e-mail.", Severity::High, ModifierKind::OutsideParties),
        ("get_secret", "Gets a secret.", Severity::Medium, ModifierKind::Secrets),
        (
            "list_messages",
            "Lists messages of a mailbox.",
            Severity::Medium,
            ModifierKind::SensitiveData,
        ),
        ("bulk_update_rules", "Updates rules.", Severity::High, ModifierKind::Bulk),
        ("update_role_assignment", "Updates a role.", Severity::High, ModifierKind::Access),
    ] {
        let rating = classify(&tool(name, description));
        assert_eq!(rating.severity, severity, "{name}");
        let modifier =
            rating.modifiers.iter().find(|it| it.kind == kind).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(modifier.direction, Direction::Raises, "{name}");
        assert!(!modifier.quote.is_empty(), "{name}");
        let steps = (rating.severity as i32 - rating.base as i32).abs();
        assert!(steps <= 1, "{name}");
    }
    let sandboxed = classify(&tool("execute_python", "Executes code in an isolated sandbox."));
    assert!(
        sandboxed
            .modifiers
            .iter()
            .any(|it| it.kind == ModifierKind::Sandboxed && it.direction == Direction::None)
    );
    assert_eq!(sandboxed.severity, Severity::High);
}

#[test]
fn a_fixed_action_is_milder_than_arbitrary_code() {
    let schema = serde_json::json!({"type": "object", "properties": {"fast": {"type": "boolean"}}});
    let rating = classify(&with_schema("restart_service", &schema));
    assert_eq!(
        (rating.category, rating.base, rating.severity),
        (Category::Execute, Severity::High, Severity::Medium)
    );
}

#[test]
fn a_reader_that_saves_where_it_is_told_writes() {
    let schema = serde_json::json!({"type": "object", "properties": {
        "filePath": {"type": "string", "description": "Absolute path to save the picture to."}}});
    assert_eq!(classify(&with_schema("take_screenshot", &schema)).category, Category::Write);
}

#[test]
fn reasons_quote_the_words_that_decided() {
    let rating = classify(&tool("drop_database", "Removes the database."));
    let quotes: Vec<(&str, &str)> =
        rating.reasons.iter().map(|it| (it.place.as_str(), it.quote.as_str())).collect();
    assert!(
        quotes.contains(&("name", "drop")) || quotes.contains(&("description", "Removes")),
        "{quotes:?}"
    );
}

#[test]
fn a_remark_behind_the_first_sentence_only_raises() {
    // Found by chance: the head of the second sentence outvoted a name that is also a noun.
    for (remark, unnamed) in [
        ("A tidy cellar. Gets its rows.", Category::Read),
        ("A tidy cellar. Runs in a secure, isolated sandbox.", Category::Write),
        ("A tidy cellar runs in a secure, isolated sandbox.", Category::Write),
        ("A tidy cellar. Executes its code.", Category::Execute),
    ] {
        assert_eq!(
            classify(&tool("drop_table", remark)).category,
            Category::Destructive,
            "{remark}"
        );
        assert_eq!(classify(&tool("zorp_table", remark)).category, unnamed, "{remark}");
    }
}
