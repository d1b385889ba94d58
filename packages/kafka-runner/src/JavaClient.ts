/**
 * Kafka's own Java clients, as the other side of a test. They write and read records as lines: `partition key value header=value,header=value`, with keys,
 * values and header values in hexadecimal digits, `-` for null, and names of headers as they are. `join` runs a member of a consumer group.
 *
 * Each call compiles and runs a file of `java`, which takes two to four seconds and needs a JDK.
 */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { Deferred, Effect, type Scope } from "effect"
import { install, installSerializers, packageFile } from "./internal/installation.ts"
import type { DownloadFailed, KafkaUnavailable } from "./RealKafkaError.ts"

/** Writes records to a topic. `properties` are those of Kafka's producer, such as `compression.type`. Dies with Java's output when Java fails. */
export const write = (
  bootstrap: ReadonlyArray<string>,
  topic: string,
  properties: Readonly<Record<string, string>>,
  lines: ReadonlyArray<string>
): Effect.Effect<void, KafkaUnavailable | DownloadFailed> =>
  Effect.asVoid(
    run(
      ["write", bootstrap.join(","), topic, ...Object.entries(properties).map((pair) => pair.join("="))],
      lines.join("\n")
    )
  )

/** Reads `count` records of a topic from its beginning, each partition in order. Dies with Java's output when Java fails. */
export const read = (
  bootstrap: ReadonlyArray<string>,
  topic: string,
  partitions: number,
  count: number
): Effect.Effect<ReadonlyArray<string>, KafkaUnavailable | DownloadFailed> =>
  Effect.map(run(["read", bootstrap.join(","), topic, String(partitions), String(count)], ""), (output) =>
    output.split("\n").filter((line) => line !== "")
  )

/**
 * Reads and writes values in the wire format of a schema registry, each line of `commands` one: `json read HEX`, `json write ID JSON`, `protobuf read HEX`, or
 * `protobuf write ID INDEXES HEX` with indexes such as `0,1`. Answers with a line for each: the value as JSON (for Protobuf the full name of the message and its bytes in hexadecimal digits),
 * or the bytes in hexadecimal digits. JSON goes through Apicurio's serializers in the wire format of Confluent; Protobuf through protobuf-java, with message indexes by
 * Kafka's own varints. Java asks `registry` for each schema. Dies with Java's output when Java fails.
 */
export const formats = (
  registry: string,
  commands: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<string>, KafkaUnavailable | DownloadFailed> =>
  Effect.gen(function* () {
    const output = yield* runFile(yield* installSerializers, "java/Formats.java", [registry], commands.join("\n"))
    return output.split("\n").filter((line) => line !== "")
  })

/** A record that a member has handled. */
export interface Handled {
  /** The topic. */
  readonly topic: string
  /** The number of the partition. */
  readonly partition: number
  /** The offset. */
  readonly offset: number
  /** When it was handled, epoch milliseconds. */
  readonly atMillis: number
  /** The value, as text. */
  readonly value: string
}

/** A member of a consumer group that runs in a Java process. */
export interface GroupMember {
  /** The records that it has handled so far, in order. */
  readonly handled: () => ReadonlyArray<Handled>
  /** The partitions that it owns now, as `topic/partition`; undefined before its first assignment. */
  readonly owned: () => ReadonlyArray<string> | undefined
  /** Commits that were refused because the group was rebalancing: what they were for may be handled again. */
  readonly refusedCommits: () => number
  /** Lets it leave the group, and waits for its end. Dies with Java's output when Java has failed. */
  readonly leave: Effect.Effect<void>
}

/** Starts a member of a consumer group. `properties` are those of Kafka's consumer, such as `partition.assignment.strategy`. It is killed when the Scope closes. */
export const join = Effect.fnUntraced(function* (
  bootstrap: ReadonlyArray<string>,
  topics: ReadonlyArray<string>,
  groupId: string,
  properties: Readonly<Record<string, string>>
): Effect.fn.Return<GroupMember, KafkaUnavailable | DownloadFailed, Scope.Scope> {
  const { java, classPath } = yield* install
  const settings = Object.entries(properties).map((pair) => pair.join("="))
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(java, [
        ...jvm(classPath, "java/GroupMember.java"),
        ...[bootstrap.join(","), topics.join(","), groupId],
        ...settings
      ])
    ),
    (process) => Effect.sync(() => process.kill("SIGKILL"))
  )
  const handled: Array<Handled> = []
  let owned: ReadonlyArray<string> | undefined
  let refusedCommits = 0
  createInterface({ input: child.stdout }).on("line", (line) => {
    const [kind, ...words] = line.split(" ")
    if (kind === "Assigned") owned = (words[0] ?? "").split(",").filter((text) => text !== "")
    if (kind === "Refused") refusedCommits++
    if (kind !== "Record") return
    const [topic = "", partition, offset, atMillis, value = ""] = words
    handled.push({ topic, partition: Number(partition), offset: Number(offset), atMillis: Number(atMillis), value })
  })
  const errors: Array<Buffer> = []
  child.stderr.on("data", (bytes: Buffer) => errors.push(bytes))
  const ended = Deferred.makeUnsafe<void>()
  child.on("close", (code) => {
    const failed = new Error(`java ended with ${code}: ${Buffer.concat(errors).toString()}`)
    Deferred.doneUnsafe(ended, code === 0 ? Effect.void : Effect.die(failed))
  })
  return {
    handled: () => handled,
    owned: () => owned,
    refusedCommits: () => refusedCommits,
    leave: Effect.andThen(
      Effect.sync(() => child.stdin.end()),
      Deferred.await(ended)
    )
  }
})

const jvm = (classPath: string, file: string): ReadonlyArray<string> => [
  ...["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classPath],
  packageFile(file)
]

const run = (programArguments: ReadonlyArray<string>, input: string) =>
  Effect.flatMap(install, (installed) => runFile(installed, "java/Records.java", programArguments, input))

const runFile = (
  { java, classPath }: { readonly java: string; readonly classPath: string },
  file: string,
  programArguments: ReadonlyArray<string>,
  input: string
) =>
  Effect.callback<string>((resume) => {
    const child = spawn(java, [...jvm(classPath, file), ...programArguments])
    const [output, errors]: [Array<Buffer>, Array<Buffer>] = [[], []]
    child.stdout.on("data", (bytes: Buffer) => output.push(bytes))
    child.stderr.on("data", (bytes: Buffer) => errors.push(bytes))
    child.on("close", (code) =>
      resume(
        code === 0
          ? Effect.succeed(Buffer.concat(output).toString())
          : Effect.die(new Error(`java ended with ${code}: ${Buffer.concat(errors).toString()}`))
      )
    )
    child.stdin.end(input)
    return Effect.sync(() => child.kill("SIGKILL"))
  })
