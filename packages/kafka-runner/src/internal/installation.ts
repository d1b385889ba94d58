/** Java, and the broker's jars, which Maven downloads once into the user's cache folder. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { DownloadFailed, KafkaUnavailable } from "../RealKafkaError.ts"
import { execute } from "./execute.ts"
import { withFileLock } from "./fileLock.ts"

export interface Installation {
  readonly java: string
  readonly keytool: string
  readonly classPath: string
}

export const packageFile = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url))

/** Outside of the work tree, so that a fresh clone finds the jars of an earlier one. */
export const cacheFolder = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "eventbus-kafka")

const brokerPom = packageFile("pom.xml")
const serializersPom = packageFile("serializers.pom.xml")

/** `KAFKA_VERSION` names another release of Apache Kafka than the one of pom.xml. */
const { KAFKA_VERSION: otherVersion } = process.env

const jarFolder = (pom: string): string => {
  const hash = createHash("sha256").update(readFileSync(pom)).digest("hex").slice(0, 12)
  return join(cacheFolder(), otherVersion === undefined ? `jars-${hash}` : `jars-${otherVersion}-${hash}`)
}

const isDownloaded = (pom: string): boolean => existsSync(join(jarFolder(pom), ".done"))

const javaTool = (name: string): string => {
  const home = process.env.JAVA_HOME
  return home ? join(home, "bin", name) : name
}

const requireJava = Effect.gen(function* () {
  const version = yield* execute(javaTool("java"), ["-version"]).pipe(
    Effect.mapError(() => new KafkaUnavailable({ missing: "Java was not found" }))
  )
  const major = Number(/version "(\d+)/.exec(version)?.[1])
  if (!(major >= 17))
    return yield* new KafkaUnavailable({ missing: `Java 17+ is needed, found ${version.split("\n")[0]}` })
})

/** Fails when this machine cannot run a broker; downloads nothing. */
export const requireTools: Effect.Effect<void, KafkaUnavailable> = Effect.gen(function* () {
  yield* requireJava
  if (isDownloaded(brokerPom)) return
  yield* execute("mvn", ["-version"]).pipe(
    Effect.mapError(() => new KafkaUnavailable({ missing: "Maven was not found" }))
  )
})

const download = Effect.fnUntraced(function* (pom: string) {
  if (isDownloaded(pom)) return // Another process downloaded while this one waited for the lock.
  const folder = jarFolder(pom)
  yield* execute("mvn", [
    "-q",
    "-B",
    "-f",
    pom,
    "dependency:copy-dependencies",
    `-DoutputDirectory=${folder}`,
    "-DincludeScope=runtime",
    ...(otherVersion === undefined ? [] : [`-Dkafka.version=${otherVersion}`])
  ]).pipe(Effect.mapError((failure) => new DownloadFailed({ detail: failure.output })))
  // Written last, so that an interrupted download does not count as complete.
  yield* Effect.promise(() => writeFile(join(folder, ".done"), ""))
})

/** The jars of a class path. Two processes never download at the same time. */
const jarsOf = Effect.fnUntraced(function* (pom: string) {
  if (!isDownloaded(pom)) {
    yield* Effect.promise(() => mkdir(cacheFolder(), { recursive: true }))
    yield* withFileLock(join(cacheFolder(), "download.lock"), download(pom))
  }
  return join(jarFolder(pom), "*")
})

/** Java and the broker's class path. Downloads the jars on first use (43 MB). */
export const install: Effect.Effect<Installation, KafkaUnavailable | DownloadFailed> = Effect.gen(function* () {
  yield* requireTools
  return { java: javaTool("java"), keytool: javaTool("keytool"), classPath: yield* jarsOf(brokerPom) }
})

/** Java, with the serializers of schema registries before the broker's class path. Downloads their jars on first use (9 MB). */
export const installSerializers: Effect.Effect<Installation, KafkaUnavailable | DownloadFailed> = Effect.gen(
  function* () {
    const installed = yield* install
    return { ...installed, classPath: `${yield* jarsOf(serializersPom)}${delimiter}${installed.classPath}` }
  }
)
