/**
 * Kafka's own Java clients, as the other side of a test. They write and read records as lines: `partition key value header=value,header=value`, with keys,
 * values and header values in hexadecimal digits, `-` for null, and names of headers as they are.
 *
 * Each call compiles and runs `java/Records.java`, which takes two to four seconds and needs a JDK.
 */
import { spawn } from "node:child_process"
import { Effect } from "effect"
import { install, packageFile } from "./internal/installation.ts"
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

const run = (programArguments: ReadonlyArray<string>, input: string) =>
  Effect.flatMap(install, ({ java, classPath }) =>
    Effect.callback<string>((resume) => {
      const file = packageFile("java/Records.java")
      const child = spawn(java, ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classPath, file, ...programArguments])
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
  )
