/** Ruling 86: `docs/user-functions.md` names every kind of user function, and every file that starts a fiber beside the work. */

import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const page = readFileSync(`${root}docs/user-functions.md`, "utf8")

const sourcesOf = (name: string): ReadonlyArray<readonly [path: string, text: string]> =>
  readdirSync(`${root}packages/${name}/src`, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => [`${name}/src/${path}`, readFileSync(`${root}packages/${name}/src/${path}`, "utf8")])

/** The packages whose code runs in a user's process. */
const packages =
  "core kafkajs config admin cli outbox rabbitmq redis schema-registry avro json-schema protobuf observability node".split(
    " "
  )
const sources = packages.flatMap(sourcesOf)

/** Files of settings and of services that a user implements. */
const givenByUsers =
  /(Options|Settings|Hook|Interceptor|Codec|Tracker|Exporter|Serde|Handler|TopicName|DeadLetter|CircuitBreaker|IdempotencyStore)\.ts$/

/** Functions of these files that a user calls, or that another row stands for. */
const calledByUsers = new Set(
  "tryAcquireUnsafe releaseUnsafe stateUnsafe isCurrentUnsafe freePermitsUnsafe judgeUnsafe remembersUnsafe lookUp abandon byId refusal idOf versionOf incompatibilities decode frame serde eval".split(
    " "
  )
)

describe("the page of user functions and fibers", () => {
  it("ruling 86: names every function that a user gives", () => {
    const missing = sources
      .filter(([path]) => givenByUsers.test(path) && !path.includes("/internal/"))
      .flatMap(([path, text]) =>
        [...text.matchAll(/^ {2}readonly (\w+)\??: ?\((?!typeof)/gm)]
          .map((match) => match[1]!)
          .filter((name) => !calledByUsers.has(name) && !/^(increment|record)[A-Z]/.test(name))
          .filter((name) => !page.includes(`\`${name}\``))
          .map((name) => `${path} ${name}`)
      )
    assert.deepStrictEqual(missing, [])
  })

  it("ruling 86: names every file that starts a fiber beside the work", () => {
    const missing = sources
      .filter(([, text]) => /\bfork(Scoped|In|Detach)\(|\bFiberSet\.(make|run)|\brunForkWith\(/.test(text))
      .map(([path]) => path)
      .filter((path) => !page.includes(`\`${path}\``))
    assert.deepStrictEqual(missing, [])
  })

  it("ruling 86: names no file that is gone", () => {
    const known = new Set(sources.map(([path]) => path))
    const gone = [...page.matchAll(/`((?:core|kafkajs|outbox)\/src\/[^`]+\.ts)`/g)]
      .map((match) => match[1]!)
      .filter((path) => !known.has(path))
    assert.deepStrictEqual(gone, [])
  })

  it("ruling 86: every loop of the connector that lives long is kept running", () => {
    const oneTask = ["inspectTopics(", "Effect.andThen(consumer.joined"]
    const files = [
      "core/src/EventBusConnector.ts",
      "core/src/internal/group/consumer.ts",
      "core/src/internal/observe/passedOver.ts"
    ]
    const unkept = sources
      .filter(([path]) => files.includes(path))
      .flatMap(([path, text]) =>
        [...text.matchAll(/Effect\.forkScoped\(\s*(.{0,40})/g)]
          .map((match) => match[1]!)
          .filter((started) => !started.startsWith("keepRunning(") && !oneTask.some((task) => started.startsWith(task)))
          .map((started) => `${path}: ${started}`)
      )
    assert.deepStrictEqual(unkept, [])
  })

  it("ruling 86: every fiber of the outbox that lives long has a supervisor", () => {
    const bounded = ["outbox/src/Outbox.ts", "outbox/src/internal/store/readOnly.ts"]
    const unsupervised = sources
      .filter(([path]) => path.startsWith("outbox/") && !bounded.includes(path))
      .flatMap(([path, text]) =>
        [...text.matchAll(/Effect\.fork(?:Scoped|In|Detach)\((.{0,80})/g)]
          .filter((match) => !match[1]!.startsWith("tools.supervise("))
          .map((match) => `${path}: ${match[0]}`)
      )
    assert.deepStrictEqual(unsupervised, [])
  })

  it("ruling 86: every log line of the packages goes through LogLine, so that a logger that throws ends nothing", () => {
    const own = sources
      .filter(([path]) => !path.startsWith("outbox/") && path !== "core/src/internal/base/logLine.ts")
      .flatMap(([path, text]) =>
        [...text.matchAll(/^(?! *\*).*\bEffect\.log[A-Z(].*$/gm)].map(([line]) => `${path}: ${line.trim()}`)
      )
    assert.deepStrictEqual(own, [])
  })

  it("ruling 86: every line of the outbox's log goes through its guard", () => {
    const unguarded = sources
      .filter(([path]) => path.startsWith("outbox/") && path !== "outbox/src/internal/base/log.ts")
      .filter(([, text]) => /\bEffect\.log/.test(text))
      .map(([path]) => path)
    assert.deepStrictEqual(unguarded, [])
  })
})
