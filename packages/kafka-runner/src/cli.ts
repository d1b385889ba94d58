/** `pnpm kafka up|status|down`: one plaintext broker that stays in the background until it is taken down. */
import { existsSync, readFileSync } from "node:fs"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Exit, Schedule, Schema, Scope } from "effect"
import { spawnDetached } from "./internal/brokerProcess.ts"
import { makeClusterProcesses } from "./internal/clusterProcesses.ts"
import { execute } from "./internal/execute.ts"
import { cacheFolder, install } from "./internal/installation.ts"
import { isAlive } from "./internal/isAlive.ts"
import { prepareCluster } from "./internal/prepareCluster.ts"

const folder = join(cacheFolder(), "background")
const stateFile = join(folder, "state.json")

const State = Schema.Struct({ pid: Schema.Int, bootstrap: Schema.String })
const StateJson = Schema.fromJsonString(State)

/** The broker that `up` started, if it still runs. Another process with the same pid does not have the folder in its command line. */
const findRunning = Effect.gen(function* () {
  if (!existsSync(stateFile)) return undefined
  const state = yield* Schema.decodeEffect(StateJson)(readFileSync(stateFile, "utf8"))
  const commandLine = yield* execute("ps", ["-o", "command=", "-ww", "-p", String(state.pid)]).pipe(
    Effect.orElseSucceed(() => "")
  )
  return commandLine.includes(folder) ? state : undefined
})

const launch = Effect.gen(function* () {
  const installation = yield* install
  yield* Effect.promise(async () => {
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
  })
  const cluster = yield* prepareCluster(installation, folder, {
    ...{
      brokers: 1,
      security: "plaintext",
      acls: false,
      oauth: false,
      clientCertificates: false,
      config: {},
      compiler: "c2"
    },
    firstPort: 19_092
  })
  const processes = yield* makeClusterProcesses(cluster, spawnDetached)
  const broker = yield* processes.launch(1)
  yield* processes.awaitReady("3 minutes")
  const state = { pid: broker.pid ?? 0, bootstrap: cluster.brokers.get(1)?.address ?? "" }
  const text = yield* Schema.encodeEffect(StateJson)(state)
  yield* Effect.promise(() => writeFile(stateFile, text))
  return state
})

const up = Effect.gen(function* () {
  const scope = yield* Scope.make()
  // The scope stays open on success, because the broker is meant to stay.
  const keep = launch.pipe(
    Scope.provide(scope),
    Effect.onError(() => Scope.close(scope, Exit.void))
  )
  const { bootstrap } = (yield* findRunning) ?? (yield* keep)
  return `Kafka runs at ${bootstrap}. Use it with: export KAFKA_BROKERS=${bootstrap}`
})

const status = Effect.gen(function* () {
  const running = yield* findRunning
  return running === undefined ? "No Kafka runs." : `Kafka runs at ${running.bootstrap} (pid ${running.pid}).`
})

const down = Effect.gen(function* () {
  const running = yield* findRunning
  if (running === undefined) return "No Kafka runs."
  process.kill(running.pid, "SIGTERM")
  yield* Effect.suspend(() => (isAlive(running.pid) ? Effect.fail("still running") : Effect.void)).pipe(
    Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 100 }),
    Effect.catch(() => Effect.sync(() => process.kill(running.pid, "SIGKILL")))
  )
  yield* Effect.promise(() => rm(folder, { recursive: true, force: true }))
  return `Kafka at ${running.bootstrap} was stopped.`
})

const usage = `usage: pnpm kafka up|status|down

  up      starts one broker in the background and prints its address; a broker that runs is kept
  status  says whether it runs, and where
  down    stops it and deletes its data

Its listeners take the first three free ports of 127.0.0.1 from 19092 on: the printed address is that of clients. There are no options. It needs Java 17 (JAVA_HOME, else java on
the path) and, for the first download of its jars, Maven. Jars, data and log are in ${cacheFolder()}; XDG_CACHE_HOME moves that folder, and one folder has one broker.`

const commands = { up, status, down }
const name = process.argv[2]

if (name === "up" || name === "status" || name === "down") {
  await Effect.runPromise(
    Effect.match(commands[name], {
      onSuccess: (line) => console.log(line),
      onFailure: (error) => {
        console.error(error.message)
        process.exitCode = 1
      }
    })
  )
} else if (name === "--help" || name === "-h" || name === "help") {
  console.log(usage)
} else {
  console.error(usage)
  process.exitCode = 2
}
