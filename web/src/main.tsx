import { render } from "preact";
import "@preact/signals";
import "./style.css";
import { App } from "./app";

// What the page shows without scripts.
document.getElementById("plain")?.remove();
render(<App />, document.getElementById("app")!);
