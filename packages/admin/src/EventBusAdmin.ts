/**
 * The operations of an administrator on the bindings of this process and on their dead letters, as a service (connector seed §4.14). `AdminRoutes` offers them over HTTP.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Binding } from "@eventbus/core"
 * import { KafkaJs } from "@eventbus/kafkajs"
 * import { Effect, Layer } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", handler: ({ record }) => Effect.log(record.topic) })
 *
 * export const Main = EventBusAdmin.layer().pipe(
 *   Layer.provideMerge(Binding.layer(orders)),
 *   Layer.provide(KafkaJs.layer({ brokers: ["localhost:9092"] }))
 * )
 * ```
 */
import type { Handlers } from "@eventbus/config"
import {
  type Binding,
  type Broker,
  DeadLetterSelection,
  EventBusConnector,
  type EventBusError,
  Outside,
  Replay
} from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AdminAudit } from "./AdminAudit.ts"
import { DeadLetterNotFound, type NotRunHere } from "./AdminError.ts"
import type { AdminFleet } from "./AdminFleet.ts"
import type { AdminHeld } from "./AdminHeld.ts"
import type { AdminLetters } from "./AdminLetters.ts"
import type { AdminOutbox } from "./AdminOutbox.ts"
import type { AdminParked } from "./AdminParked.ts"
import type { AdminTransforms } from "./AdminTransforms.ts"
import type * as Answers from "./Answers.ts"
import * as AnswersOf from "./internal/answersOf.ts"
import * as AuditOperations from "./internal/audit/auditOperations.ts"
import * as TransformOperations from "./internal/difference/transformOperations.ts"
import * as FleetOperations from "./internal/fleet/fleetOperations.ts"
import * as LetterAnswers from "./internal/letterAnswers.ts"
import * as LettersOfTopic from "./internal/lettersOfTopic.ts"
import { type Shown, shownBy } from "./internal/masking.ts"
import * as OutboxOperations from "./internal/outbox/outboxOperations.ts"
import * as OutsideOperations from "./internal/outside/outsideOperations.ts"
import * as ParkedOperations from "./internal/parked/parkedOperations.ts"
import * as ProcessOperations from "./internal/process/processOperations.ts"
import * as Rehearsals from "./internal/rehearsals.ts"
import * as ReplayOperations from "./internal/runs/replayOperations.ts"
import * as RunOperations from "./internal/runs/runOperations.ts"
import type { Mask, MaskText } from "./Mask.ts"

/** The failures of a lifecycle command. */
export type CommandError = EventBusConnector.BindingLookupError | EventBusError.InvalidContainerState | NotRunHere

/** The failures of a registration: settings, all at once; the cluster; the name; a connector that is closing; a process that runs no bindings. */
export type RegistrationError =
  | NotRunHere
  | EventBusError.ConfigurationValidation
  | EventBusError.UnknownCluster
  | EventBusError.BindingAlreadyExists
  | EventBusError.ConnectorClosed

/** Answers the binding as it is after the command. */
export type Command = (name: string) => Effect.Effect<Answers.BindingSummary, CommandError>

/** The same, for the whole binding or for one of its retry tiers, from 1. */
export type TierCommand = (
  name: string,
  options?: EventBusConnector.TierOptions
) => Effect.Effect<Answers.BindingSummary, CommandError | Replay.InvalidArgument | Replay.UnknownTier>

/**
 * A name is that of a binding, or `{cluster}:{binding}`. Operations fail with `BindingNotFound`, and with `AmbiguousBinding` where bindings of several clusters have the
 * plain name.
 */
export class EventBusAdmin extends Context.Service<
  EventBusAdmin,
  AdminLetters &
    AdminAudit &
    AdminFleet &
    AdminHeld &
    AdminParked &
    AdminTransforms & {
      /** Every binding, by key. Asks no broker. */
      readonly list: Effect.Effect<ReadonlyArray<Answers.BindingSummary>>
      /** The same, with the message of each newest failure, as far as the layer's `maskText` shows it: it may quote the record. */
      readonly listWithMessages: Effect.Effect<ReadonlyArray<Answers.BindingSummary>>
      /** One binding, with its figures. Asks no broker. */
      readonly get: (name: string) => Effect.Effect<Answers.BindingDetail, EventBusConnector.BindingLookupError>
      /** The key of a binding, `{cluster}:{binding}`. */
      readonly keyOf: (name: string) => Effect.Effect<string, EventBusConnector.BindingLookupError>
      /**
       * Registers a binding, and starts it unless `autoStartup` is false. The properties are those of a configuration file, and `name`. `handler`, by default the name, is one of
       * the layer's `handlers`.
       */
      readonly register: (properties: unknown) => Effect.Effect<Answers.BindingSummary, RegistrationError>
      /** The same from a JSON text. It also refuses a key that occurs twice. */
      readonly registerJson: (text: string) => Effect.Effect<Answers.BindingSummary, RegistrationError>
      /** Stops a binding, from whatever state, and removes it. Answers the binding as it was before, in state DESTROYED. */
      readonly unregister: (name: string) => Effect.Effect<Answers.BindingDetail, CommandError>
      /** CREATED or STOPPED to RUNNING. */
      readonly start: Command
      /** RUNNING or PAUSED to STOPPED. Waits for running handlers and commits, within `shutdownTimeout`. */
      readonly stop: Command
      /** RUNNING to PAUSED. The binding stays in its group. */
      readonly pause: TierCommand
      /** PAUSED to RUNNING. */
      readonly resume: TierCommand
      /**
       * The operations on the dead letters of one of the topics of a binding; those on all of them where none is named. The operations themselves are those on all topics: of a
       * binding of several topics, `letters`, `groups`, `stats` and `runs` show all of them, an operation with the id of a plan or run finds its topic, and every other one fails
       * with `InvalidArgument`, which names the topics.
       */
      readonly ofTopic: (topic: string | undefined) => AdminLetters
      /** The dead events of the program's outbox. Each operation fails with `OutboxOff` where the layer is built over no `OutboxPort`. */
      readonly outbox: AdminOutbox
      /** Requests whose work is done once in the group of a binding. */
      readonly requests: EventBusConnector.EventBusConnector["Service"]["requests"]
      /** How all bindings are. Asks no broker. */
      readonly health: Effect.Effect<Answers.HealthReport>
    }
>()("@eventbus/admin/EventBusAdmin") {}

/** Options of the layer. */
export interface Options<R> {
  /** The handlers that registrations can name. Default: none, so that nothing can be registered. */
  readonly handlers?: Handlers.Handlers<R>
  /** Decides which parts of a dead letter answers show, to everybody. Default: callers who may see payloads see all of it. */
  readonly mask?: Mask
  /**
   * Decides what answers show of texts that may quote a record: keys in lists, messages of errors, reasons in words. Default: all; beside a `mask`, nothing. With either function,
   * no text is looked for in payloads.
   */
  readonly maskText?: MaskText
}

/** The service over the program's running connector. With `Audit.layer` below it, the HTTP routes audit; with `OutboxPort`, it deals with the dead events of an outbox. It needs what the handlers require, and the broker, for bindings that are registered later. */
export const layer = <R = never>(
  options: Options<R> = {}
): Layer.Layer<EventBusAdmin, never, EventBusConnector.EventBusConnector | Broker.Broker | R> =>
  Layer.effect(EventBusAdmin, make(options))

const make = Effect.fnUntraced(function* <R>({ handlers, ...masking }: Options<R>) {
  const shown = shownBy(masking)
  const connector = yield* EventBusConnector.EventBusConnector
  return EventBusAdmin.of({
    ...(yield* onClusters(connector, shown)),
    ...(yield* ProcessOperations.make(connector, handlers, shown))
  })
})

/** Options of `layerOutside`. */
export interface OutsideOptions<R> extends Omit<Options<R>, "handlers"> {
  /** The bindings that other processes run. */
  readonly bindings: ReadonlyArray<Binding.Binding<R>>
}

/**
 * The service over bindings that other processes run, straight on their clusters. It starts nothing, joins no group and no fleet, and commits no offset of a group that consumes:
 * commands of scope `process`, decisions about held records and registrations fail with `NotRunHere`. Dead letters, their plans and runs, and with `Fleet.layer` and `Audit.layer` below it
 * the fleet and the audit log, work as in a process. Rehearsals call a handler only in the layer of `Binding.rehearsable`. Fails for a binding of a cluster that the program does not have.
 */
export const layerOutside = <R>(
  options: OutsideOptions<R>
): Layer.Layer<EventBusAdmin, EventBusError.UnknownCluster, Broker.Broker | R> =>
  Layer.effect(EventBusAdmin, makeOutside(options))

const makeOutside = Effect.fnUntraced(function* <R>({ bindings, ...masking }: OutsideOptions<R>) {
  const outside = yield* Outside.make(bindings)
  return EventBusAdmin.of({
    ...(yield* onClusters(outside, shownBy(masking))),
    ...(yield* OutsideOperations.make(outside))
  })
})

type Bindings = Pick<Outside.Outside, "snapshot" | "deadLetters" | "parked" | "runs" | "requests">

/** The operations on what lies in Kafka, whichever process runs the bindings. */
const onClusters = Effect.fnUntraced(function* (bindings: Bindings, shown: Shown) {
  const keyOf = (name: string) => Effect.map(bindings.snapshot(name), AnswersOf.keyOf)
  const rehearsals = yield* Rehearsals.make
  const scope = yield* Effect.scope
  const lettersOf = (topic: string | undefined): AdminLetters => {
    const letters = LettersOfTopic.of(bindings, topic)
    return {
      ...letterOperations({ ...letters, snapshot: bindings.snapshot }, topic, rehearsals, shown),
      ...RunOperations.make(letters, shown, scope),
      ...ReplayOperations.make(letters),
      ...TransformOperations.make({ ...letters, snapshot: bindings.snapshot }, shown)
    }
  }
  const ofAll = lettersOf(undefined)
  return {
    ...{ keyOf, requests: bindings.requests },
    ...ofAll,
    ofTopic: (topic: string | undefined) => (topic === undefined ? ofAll : lettersOf(topic)),
    transforms: (name: string) => Effect.map(bindings.deadLetters(name), ({ transforms }) => transforms),
    outbox: yield* OutboxOperations.make(shown),
    ...ParkedOperations.make(bindings, shown),
    ...{ ...(yield* FleetOperations.make(bindings)), ...(yield* AuditOperations.make) }
  }
})

const letterOperations = (
  connector: LettersOfTopic.Letters & Pick<Bindings, "snapshot">,
  topic: string | undefined,
  rehearsals: Rehearsals.Rehearsals,
  shown: Shown
): Pick<AdminLetters, "groups" | "letters" | "letter" | "rehearse" | "rehearsal"> => ({
  groups: Effect.fnUntraced(function* (name, { payload = false, ...options } = {}) {
    const letters = yield* connector.deadLetters(name)
    return LetterAnswers.groupsOf(yield* letters.groups(options), shown(payload))
  }),
  letters: Effect.fnUntraced(function* (name, { payload = false, ...query } = {}) {
    const letters = yield* connector.deadLetters(name)
    return LetterAnswers.pageOf(
      yield* letters.letters({ ...query, searchesPayload: shown(payload) === true }),
      shown(payload)
    )
  }),
  letter: Effect.fnUntraced(function* (name, position, { payload = false } = {}) {
    const letters = yield* connector.deadLetters(name)
    const found = yield* letters.letter(position)
    if (found !== undefined) return LetterAnswers.letterOf(found, shown(payload))
    const binding = AnswersOf.keyOf(yield* connector.snapshot(name))
    return yield* new DeadLetterNotFound({ binding, position: DeadLetterSelection.formatPosition(position) })
  }),
  rehearse: Effect.fnUntraced(function* (name, selection, options) {
    const letters = yield* connector.deadLetters(name)
    const [issue] = DeadLetterSelection.issues(selection)
    if (issue !== undefined) {
      const { path, given, expected } = issue
      return yield* new Replay.InvalidArgument({ command: "rehearse", argument: path, given, expected })
    }
    const { transform } = options ?? {}
    if (transform !== undefined && !letters.transforms.includes(transform))
      return yield* unknownTransform(transform, letters.transforms)
    const snapshot = yield* connector.snapshot(name)
    if (topic === undefined && snapshot.topics.length > 1) return yield* noTopic(snapshot.topics)
    const begun = yield* rehearsals.begin(AnswersOf.keyOf(snapshot), letters.rehearse(selection, options))
    return LetterAnswers.rehearsalOf(begun, false)
  }),
  rehearsal: Effect.fnUntraced(function* (name, id, { payload = false } = {}) {
    const binding = AnswersOf.keyOf(yield* connector.snapshot(name))
    return LetterAnswers.rehearsalOf(yield* rehearsals.find(binding, id), shown(payload))
  })
})

/** As the rehearsal would say in the background, where nobody hears it. */
const noTopic = (topics: ReadonlyArray<string>) => {
  const expected = `a topic that the binding reads: ${topics.join(", ")}`
  return new Replay.InvalidArgument({ command: "rehearse", argument: "topic", given: "undefined", expected })
}

/** In the same way. */
const unknownTransform = (given: string, known: ReadonlyArray<string>) => {
  const expected = known.length === 0 ? "none: in this process the binding has no transforms" : known.join(", ")
  return new Replay.InvalidArgument({ command: "rehearse", argument: "transform", given, expected })
}
