/** One broker as a process of this machine. */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { Effect } from "effect"
import { packageFile } from "./installation.ts"

export interface BrokerCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly logFile: string
}

/** Java compiler of the broker. `c1` starts with half the CPU time; `c2` is faster once warm. */
export type Compiler = "c1" | "c2"

export const brokerCommand = (options: {
  readonly java: string
  readonly classPath: string
  readonly propertiesFile: string
  readonly logFile: string
  readonly heapMegabytes: number
  readonly compiler: Compiler
}): BrokerCommand => ({
  command: options.java,
  args: [
    `-Xmx${options.heapMegabytes}m`,
    ...(options.compiler === "c1" ? ["-XX:TieredStopAtLevel=1"] : []),
    `-Dlog4j2.configurationFile=${packageFile("log4j2.yaml")}`,
    ...["-cp", options.classPath, "kafka.Kafka", options.propertiesFile]
  ],
  logFile: options.logFile
})

const spawnLogged = (
  logFile: string,
  command: string,
  args: ReadonlyArray<string>,
  lifeline: "pipe" | "ignore"
): ChildProcess => {
  const log = openSync(logFile, "a")
  // In a process group of its own, so that an interrupt from the terminal does not end the broker before the test's consumers.
  const child = spawn(command, [...args], { detached: true, stdio: ["ignore", log, log, lifeline] })
  closeSync(log)
  return child
}

export interface BrokerProcess {
  readonly pid: number | undefined
  readonly isRunning: () => boolean
  readonly exited: Promise<void>
  /** Sends the signal, unless the process has ended already, and waits for its end. */
  readonly end: (signal: "SIGTERM" | "SIGKILL") => Effect.Effect<void>
  /** Suspends the process, or lets it go on, unless it has ended. */
  readonly signal: (signal: "SIGSTOP" | "SIGCONT") => Effect.Effect<void>
}

const observe = (child: ChildProcess): BrokerProcess => {
  let running = true
  const exited = new Promise<void>((resolve) => {
    const onEnd = () => {
      running = false
      resolve()
    }
    child.once("exit", onEnd)
    child.once("error", onEnd)
  })
  return {
    pid: child.pid,
    isRunning: () => running,
    exited,
    end: (signal) =>
      Effect.promise(async () => {
        if (running) child.kill(signal)
        await exited
        dismissWatcher(child)
      }),
    signal: (signal) =>
      Effect.sync(() => {
        if (running) child.kill(signal)
      })
  }
}

/** Tells the watcher of `guarded.sh` that its owner cleans up itself. */
const dismissWatcher = (child: ChildProcess): void => {
  const lifeline = child.stdio[3]
  if (lifeline && "write" in lifeline && !lifeline.writableEnded) lifeline.end("\n")
}

/** A broker that dies with this process, however this process ends. The run folder is removed with it. */
export const spawnGuarded = (runFolder: string, broker: BrokerCommand): BrokerProcess => {
  const guarded = [packageFile("guarded.sh"), runFolder, broker.command, ...broker.args]
  const child = spawnLogged(broker.logFile, "sh", guarded, "pipe")
  child.stdio[3]?.on("error", () => {}) // The watcher may have ended already.
  return observe(child)
}

/** A broker that stays when this process ends. */
export const spawnDetached = (broker: BrokerCommand): BrokerProcess => {
  const child = spawnLogged(broker.logFile, broker.command, broker.args, "ignore")
  child.unref()
  return observe(child)
}

/** The last lines of a broker's output, for error messages. */
export const logTail = (logFile: string): Effect.Effect<string> =>
  Effect.promise(() => readFile(logFile, "utf8").catch(() => "(no output)")).pipe(
    Effect.map((text) => text.trimEnd().split("\n").slice(-25).join("\n"))
  )
