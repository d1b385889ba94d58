/** A module for `--outbox` that also provides an audit log, which notes its entries in `entries`. */
import { Audit, type AuditView } from "@eventbus/core"
import type { OutboxStore } from "@eventbus/outbox"
import { Effect, Layer } from "effect"
import outbox from "./outbox.ts"

export const entries: Array<AuditView.Action & { readonly outcome: string }> = []

const log = Layer.succeed(
  Audit.Audit,
  Audit.Audit.of({
    topic: "audit",
    createTopic: Effect.void,
    around: (_, run) => run,
    begin: (action) => Effect.sync(() => String(entries.push({ ...action, outcome: "begun" }))),
    end: (_, action, { outcome }) => Effect.sync(() => void entries.push({ ...action, outcome })),
    view: (action) => Effect.sync(() => void entries.push({ ...action, outcome: "view" })),
    refused: () => Effect.void,
    page: () => Effect.succeed({ entries: [], next: undefined })
  })
)

const audited: Layer.Layer<OutboxStore.OutboxStore | Audit.Audit, unknown> = Layer.merge(outbox, log)

export default audited
