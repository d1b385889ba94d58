#!/usr/bin/env node
import { readFileSync } from "node:fs"
// Not from the index, which loads ten times as much.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import * as Cli from "./Cli.ts"

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8")
)

NodeRuntime.runMain(Effect.provide(Cli.run(version), NodeServices.layer), {
  disableErrorReporting: true,
  teardown: Cli.teardown
})
