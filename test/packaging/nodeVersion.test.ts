import { expect, it } from "vitest"

// Without the `node` package's build script pnpm runs everything on the machine's own Node, and says so only in a warning.
it("tests run on the Node that the workspace pins", () => {
  expect(process.version).toMatch(/^v24\./)
})
