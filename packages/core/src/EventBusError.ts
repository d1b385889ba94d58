/**
 * Errors of the connector itself, as tagged errors (the `EventBusException` family, connector seed §11).
 */
import * as Schema from "effect/Schema"
import type { ConsumerRecord } from "./ConsumerRecord.ts"

/** The states of a binding's container, in the order of the metric's encoding (0 to 4). */
export const ContainerState = Schema.Literals(["CREATED", "RUNNING", "PAUSED", "STOPPED", "DESTROYED"])
export type ContainerState = typeof ContainerState.Type

/** A lifecycle command that the binding's current state does not allow. */
export class InvalidContainerState extends Schema.TaggedError<InvalidContainerState>()("InvalidContainerState", {
  /** The name of the binding. */
  binding: Schema.String,
  /** The command, such as `pause`. */
  operation: Schema.String,
  /** The state of the binding. */
  current: ContainerState,
  /** The states in which the command is allowed. */
  required: Schema.Array(ContainerState),
  /** More that the caller should know, such as the reasons of a pause. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    const rule = `current state is ${this.current}, ${this.operation} requires ${this.required.join(" or ")}`
    return `Cannot ${this.operation} binding '${this.binding}': ${rule}${this.detail === undefined ? "" : `; ${this.detail}`}`
  }
}

/**
 * No record at this position waits for an operator in this process. Nothing was done. After a rebalance a record is held again when the new owner of its partition has
 * tried it.
 */
export class RecordNotHeld extends Schema.TaggedError<RecordNotHeld>()("RecordNotHeld", {
  /** The name of the binding. */
  binding: Schema.String,
  /** The topic that was named. */
  topic: Schema.String,
  /** The partition that was named. */
  partition: Schema.Number,
  /** The offset that was named, in decimal digits. */
  offset: Schema.String,
  /** The records that an operator can decide about in this process, as `topic-partition@offset`. */
  held: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const held = this.held.length === 0 ? "no record is" : `held: ${this.held.join(", ")}`
    return `Record ${this.topic}-${this.partition}@${this.offset} of binding '${this.binding}' is not held in this process; ${held}. While its handler runs, and after a rebalance until the new owner of its partition has tried it, a record is not held: give the command again, in the process that owns the partition, once the snapshot ('held') or health ('onlyCandidate') names the record.`
  }
}

/** A binding of this name is registered already. */
export class BindingAlreadyExists extends Schema.TaggedError<BindingAlreadyExists>()("BindingAlreadyExists", {
  /** The name that is taken. */
  binding: Schema.String
}) {
  override get message(): string {
    return `A binding named '${this.binding}' is registered already. Destroy it first, or choose another name.`
  }
}

/** Bindings of several clusters have this name. Nothing was done. */
export class AmbiguousBinding extends Schema.TaggedError<AmbiguousBinding>()("AmbiguousBinding", {
  /** The name that several bindings have. */
  binding: Schema.String,
  /** `{cluster}:{binding}` of each. */
  keys: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `'${this.binding}' names ${this.keys.length} bindings. Say which: ${this.keys.map((key) => `'${key}'`).join(" or ")}.`
  }
}

/** No cluster has this alias. */
export class UnknownCluster extends Schema.TaggedError<UnknownCluster>()("UnknownCluster", {
  /** The alias that no cluster has. */
  cluster: Schema.String,
  /** The aliases that exist. */
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `There is no cluster '${this.cluster}'. Known are: [${this.known.join(", ")}].`
  }
}

/** No binding of this name is registered. */
export class BindingNotFound extends Schema.TaggedError<BindingNotFound>()("BindingNotFound", {
  /** The name that no binding has. */
  binding: Schema.String,
  /** The names that are registered. */
  known: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `No binding named '${this.binding}' is registered. Registered are: [${this.known.join(", ")}].`
  }
}

/** One setting that cannot be. */
export const ConfigurationIssue = Schema.Struct({
  /** The setting, such as `retry.maxAttempts`. */
  path: Schema.String,
  /** The value that was found, as text. */
  found: Schema.String,
  /** The values that are allowed. */
  allowed: Schema.String,
  /** Where it was written, when it comes from a file or a variable: its name, and line and column from 1. */
  at: Schema.optionalKey(
    Schema.Struct({
      file: Schema.String,
      line: Schema.optionalKey(Schema.Int),
      column: Schema.optionalKey(Schema.Int)
    })
  )
})
export type ConfigurationIssue = typeof ConfigurationIssue.Type

/** Everything that is wrong with a binding's settings, or with a whole configuration, all at once. Nothing was started. */
export class ConfigurationValidation extends Schema.TaggedError<ConfigurationValidation>()("ConfigurationValidation", {
  /** Undefined when it is about a configuration of several bindings, whose paths name the binding. */
  binding: Schema.optionalKey(Schema.String),
  /** Every setting that is refused. */
  issues: Schema.Array(ConfigurationIssue)
}) {
  override get message(): string {
    const { binding, issues } = this
    const title =
      binding === undefined ? "The configuration cannot be used:" : `Binding '${binding}' cannot be registered:`
    return [title, ...issues.map((issue) => `  ${describe(issue)}`)].join("\n")
  }
}

const describe = ({ path, found, allowed, at }: ConfigurationIssue): string => {
  const place = at === undefined ? undefined : [at.file, at.line, at.column].filter((part) => part !== undefined)
  const where = place === undefined ? path : path === "" ? place.join(":") : `${path} (${place.join(":")})`
  return `${where}: found ${found}, allowed is ${allowed}`
}

/** The connector is shutting down and takes no new bindings. */
export class ConnectorClosed extends Schema.TaggedError<ConnectorClosed>()("ConnectorClosed", {
  /** The name of the refused binding. */
  binding: Schema.String
}) {
  override get message(): string {
    return `Binding '${this.binding}' was refused: the connector is shutting down.`
  }
}

/** A handler ran longer than the processing budget (70 % of `maxPollInterval`) allows and was interrupted. */
export class ProcessingBudgetExceeded extends Schema.TaggedError<ProcessingBudgetExceeded>()(
  "ProcessingBudgetExceeded",
  {
    /** The budget, in milliseconds. */
    budgetMillis: Schema.Number
  }
) {
  override get message(): string {
    return `Handling took longer than the processing budget of ${this.budgetMillis} ms (70 % of maxPollInterval) and was interrupted.`
  }
}

/** A record was dead-lettered without an attempt, because an earlier record of its key waited for too long (`orderingMode: "PER_KEY"`). */
export class KeyBlocked extends Schema.TaggedError<KeyBlocked>()("KeyBlocked", {
  /** The binding, with its cluster unless that is `default`. */
  binding: Schema.String,
  /** The topic of the record. */
  topic: Schema.String,
  /** Its partition. */
  partition: Schema.Number,
  /** Its offset. */
  offset: Schema.BigInt,
  /** The offset of the earlier record of the same key. */
  behind: Schema.BigInt
}) {
  override get message(): string {
    const { binding, topic, partition, offset, behind } = this
    return `Binding '${binding}' gave up record ${topic}-${partition}@${offset}: its key waited for too long behind the record at offset ${behind}.`
  }
}

/**
 * How a `handleBatch` handler says which records of its batch failed; fail the handler's effect with it.
 *
 * - `from`: everything before `failedIndex` is done; that record failed; the rest was not handled and is delivered again.
 * - `these`: the named records failed, all others of the batch are done.
 */
export class BatchProcessing extends Schema.TaggedError<BatchProcessing>()("BatchProcessing", {
  /** `from`: the batch failed at one record. `these`: the named records failed. */
  kind: Schema.Literals(["from", "these"]),
  /** The failed records by their index in the batch, from 0, each with its error. */
  failures: Schema.NonEmptyArray(
    Schema.Struct({
      /** Index in the batch, from 0. */
      index: Schema.Int,
      /** Any value that the handler failed with for this record. */
      error: Schema.Defect()
    })
  )
}) {
  /** Index of the first record that failed. */
  get failedIndex(): number {
    return this.failures.reduce((least, failure) => Math.min(least, failure.index), this.failures[0].index)
  }
  /** Everything before `index` is done; it failed with `error`; the rest was not handled. */
  static from(index: number, error: unknown): BatchProcessing {
    return new BatchProcessing({ kind: "from", failures: [{ index, error }] })
  }
  /** These records failed, all others of the batch are done. */
  static these(
    failures: readonly [
      { readonly index: number; readonly error: unknown },
      ...ReadonlyArray<{ readonly index: number; readonly error: unknown }>
    ]
  ): BatchProcessing {
    return new BatchProcessing({ kind: "these", failures })
  }
  /** The records that failed, out of the batch that was handed to the handler. */
  failedRecords(batch: ReadonlyArray<ConsumerRecord>): ReadonlyArray<ConsumerRecord> {
    return this.failures.flatMap(({ index }) => batch[index] ?? [])
  }
  override get message(): string {
    return this.kind === "from"
      ? `Batch failed at index ${this.failedIndex}; the rest was not handled.`
      : `Batch records ${this.failures.map((failure) => failure.index).join(", ")} failed.`
  }
}

/** A copy for a dead letter topic could not be published. Its record stays unfinished, and the publish is repeated until it succeeds. */
export class DltPublish extends Schema.TaggedError<DltPublish>()("DltPublish", {
  /** The name of the binding. */
  binding: Schema.String,
  /** The dead letter topic. */
  topic: Schema.String,
  /** The topic of the record. */
  sourceTopic: Schema.String,
  /** The partition of the record. */
  sourcePartition: Schema.Int,
  /** The offset of the record. */
  sourceOffset: Schema.BigInt,
  /** Why the broker refused the copy: a `BrokerError`. */
  cause: Schema.Defect()
}) {
  override get message(): string {
    const { binding, topic, sourceTopic, sourcePartition, sourceOffset, cause } = this
    const record = `${sourceTopic}-${sourcePartition}@${sourceOffset}`
    return `Cannot publish the dead letter of binding '${binding}', record ${record}, to '${topic}': ${cause instanceof Error ? cause.message : String(cause)}`
  }
}

/** Any error of the connector. */
export type EventBusException =
  | InvalidContainerState
  | BindingAlreadyExists
  | BindingNotFound
  | AmbiguousBinding
  | UnknownCluster
  | ConfigurationValidation
  | ConnectorClosed
  | ProcessingBudgetExceeded
  | KeyBlocked
  | BatchProcessing
  | DltPublish
