/** Commands that a release runs, and the one error that ends it. */
import { execFileSync } from "node:child_process"

/** The reason why nothing was released; its message is all that a person needs. */
export class Refusal extends Error {
  override readonly name = "Refusal"
}

/** Runs a command and gives what it printed. A command that fails is a Refusal with the end of its output. */
export const command = (program: string, args: ReadonlyArray<string>, cwd: string): string => {
  try {
    return execFileSync(program, [...args], { cwd, encoding: "utf8", stdio: "pipe", maxBuffer: 64 * 1024 * 1024 })
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { readonly stdout?: string; readonly stderr?: string }
    const output = `${stdout}${stderr}`.trim().split("\n").slice(-20).join("\n")
    throw new Refusal(`'${program} ${args.join(" ")}' failed:\n${output === "" ? String(error) : output}`)
  }
}

export const git = (cwd: string, ...args: ReadonlyArray<string>): string => command("git", args, cwd).trim()

/** The pnpm that runs this script, or that of the workspace. */
export const pnpm = (cwd: string, ...args: ReadonlyArray<string>): string => {
  const running = process.env["npm_execpath"]
  return running?.includes("pnpm")
    ? command(process.execPath, [running, ...args], cwd)
    : command("npx", ["-y", "pnpm@10", ...args], cwd)
}
