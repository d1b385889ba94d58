/** A module for `--outbox`: the store in the database file that `OUTBOX_FILE` names. */
import { OutboxStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Config, Effect, Layer } from "effect"

const database = Layer.unwrap(Effect.map(Config.String("OUTBOX_FILE"), (filename) => NodeSqlite.layer({ filename })))

const outbox: Layer.Layer<OutboxStore.OutboxStore, unknown> = OutboxStore.layer().pipe(Layer.provide(database))

export default outbox
