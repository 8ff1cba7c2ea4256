// A browser loads no module and no data from a page that was opened as a file.
if (location.protocol === "file:") {
  const directory = decodeURIComponent(location.pathname.replace(/[^/]*$/, "")).replaceAll("'", "'\\''");
  const main = document.getElementById("main");
  const said = document.createElement("p");
  said.textContent = "A browser does not let a page that was opened as a file read its data. Serve the directory instead:";
  const command = document.createElement("pre");
  command.textContent = `python3 -m http.server --bind 127.0.0.1 --directory '${directory}' 8000`;
  const then = document.createElement("p");
  then.textContent = "Then open http://127.0.0.1:8000/.";
  main.replaceChildren(said, command, then);
}
