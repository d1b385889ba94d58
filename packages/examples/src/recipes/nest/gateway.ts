/** The handlers use it, so it is destroyed behind the last of them. */
import { Injectable } from "@nestjs/common"

@Injectable()
export class Gateway {
  #isOpen = true

  settle(id: string): void {
    console.log(`settled ${id} by ${this.#isOpen ? "an open" : "a closed"} gateway`)
  }

  onModuleDestroy(): void {
    this.#isOpen = false
  }
}
