import { render } from "preact";
import "@preact/signals";
import "./style.css";
import { App } from "./app";

render(<App />, document.getElementById("app")!);
