/** The time from the start of a process to the first record that it has handled: the cold start of a service. */
import { spawn } from "node:child_process"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { Kafka, logLevel } from "kafkajs"
import { make, type Participant, type ProcessInput, ratioAtMost, type TopicPlan } from "./harness/Benchmark.ts"
import { bundled, project } from "./start/builds.ts"

type Parameters = Readonly<Record<"starts", number>>

const topic: TopicPlan<Parameters> = { lifetime: "round", partitions: 1 }

const publish = async ({ brokers, topic }: ProcessInput): Promise<void> => {
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.ERROR }).producer()
  await producer.connect()
  await producer.send({ topic, messages: [{ value: "order" }] })
  await producer.disconnect()
}

/** Starts the program, and stops it once it has handled a record. Returns the milliseconds up to the record. */
const startedIn = ({ brokers, topic, groupId }: ProcessInput, file: string, cache: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const begin = performance.now()
    const env = { BROKERS: brokers.join(","), TOPIC: topic, GROUP: groupId, NODE_COMPILE_CACHE: cache }
    const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"], timeout: 60_000 })
    let output = ""
    let millis: number | undefined
    child.stdout.on("data", (text: Buffer) => {
      output += text
      if (millis !== undefined || !/^handled$/m.test(output)) return
      millis = performance.now() - begin
      child.kill("SIGTERM")
    })
    child.on("error", reject)
    child.on("exit", (code, signal) => {
      if (millis === undefined) reject(new Error(`${file} ended with ${signal ?? code} before it handled a record`))
      else resolve(millis)
    })
  })

/** The first start fills the compile cache and creates the topics; it is not measured. */
const participant = (program: string, isBundled: boolean): Participant<Parameters> => ({
  topic,
  role: (round) =>
    Effect.scoped(
      Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(Effect.promise(project), (made) =>
          Effect.promise(() => rm(made, { recursive: true, force: true }))
        )
        const file = isBundled ? yield* Effect.promise(() => bundled(folder, program)) : join(folder, `${program}.js`)
        const started = Effect.tryPromise(async () => {
          await publish(round)
          return startedIn(round, file, join(folder, "cache"))
        })
        yield* started
        return { millis: yield* Effect.replicateEffect(started, round.parameters.starts) }
      })
    )
})

export const start = make({
  name: "start",
  header: [
    "process start to the first record handled, compile cache warm, topics there; a group of one member that left before",
    "unbundled: the packages as JavaScript modules in node_modules; bundled: by esbuild as the guide says, both sides alike",
    "connector: on KafkaJs.layer; on Kafka.layer: the same program on connections of our own",
    "the program imports the modules of Effect one by one, as docs/guide/start-up.md says"
  ],
  parameters: { starts: 3 },
  smoke: { starts: 1 },
  rounds: 5,
  participants: {
    connector: participant("connectorProgram", false),
    kafkajs: participant("kafkajsProgram", false),
    "connector bundled": participant("connectorProgram", true),
    "on Kafka.layer": participant("ownConnectionsProgram", false),
    "on Kafka.layer bundled": participant("ownConnectionsProgram", true),
    "kafkajs bundled": participant("kafkajsProgram", true)
  },
  measures: [
    { participant: "connector", against: "kafkajs", series: "millis", unit: "ms", target: ratioAtMost(3) },
    {
      ...{ participant: "connector bundled", against: "kafkajs bundled", series: "millis", unit: "ms" },
      target: ratioAtMost(1.5)
    },
    { participant: "on Kafka.layer", against: "kafkajs", series: "millis", unit: "ms" },
    {
      ...{ participant: "on Kafka.layer bundled", against: "kafkajs bundled", series: "millis", unit: "ms" },
      target: ratioAtMost(1.3)
    }
  ]
})
