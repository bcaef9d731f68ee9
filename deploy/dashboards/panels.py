"""Builds panels, rows and variables for Grafana 10 and newer. A variable selects the data source."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
TAGS = ["medley"]


class Dashboard:
    """Panels are placed from left to right and wrap. A row begins a new line."""

    def __init__(self, uid, title, description, variables, refresh="30s", time_from="now-6h"):
        self.uid, self.title, self.description = uid, title, description
        self.variables, self.refresh, self.time_from = variables, refresh, time_from
        self.panels = []
        self.x = self.y = self.line = 0
        self.next_id = 1

    def _place(self, panel, width, height):
        if self.x + width > COLUMNS:
            self.x, self.y, self.line = 0, self.y + self.line, 0
        panel["id"] = self.next_id
        panel["gridPos"] = {"x": self.x, "y": self.y, "w": width, "h": height}
        self.next_id += 1
        self.x += width
        self.line = max(self.line, height)
        self.panels.append(panel)

    def row(self, title):
        if self.x:
            self.x, self.y, self.line = 0, self.y + self.line, 0
        self._place({"type": "row", "title": title, "collapsed": False, "panels": []}, COLUMNS, 1)
        self.x, self.y, self.line = 0, self.y + 1, 0

    def _panel(self, kind, title, description, queries, width, height, defaults, options, instant=False, **more):
        targets = []
        for index, query in enumerate(queries):
            expr, legend = query if isinstance(query, tuple) else (query, "__auto")
            target = {"datasource": DATASOURCE, "refId": chr(ord("A") + index), "expr": expr, "legendFormat": legend,
                      "editorMode": "code", "range": not instant, "instant": instant}
            if kind == "table":
                target["format"] = "table"
            targets.append(target)
        self._place({"type": kind, "title": title, "description": description, "datasource": DATASOURCE,
                     "targets": targets, "options": options,
                     "fieldConfig": {"defaults": defaults, "overrides": more.pop("overrides", [])}, **more},
                    width, height)

    def stat(self, title, description, query, unit, width=4, height=4, thresholds=None, decimals=None, mappings=None,
             text=False, sparkline=True):
        defaults = {"unit": unit, "noValue": "-", "color": {"mode": "thresholds"},
                    "thresholds": steps(thresholds or [(None, "blue")]), "mappings": mappings or []}
        if decimals is not None:
            defaults["decimals"] = decimals
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                   "colorMode": "value", "graphMode": "none" if text or not sparkline else "area",
                   "textMode": "name" if text else "value", "justifyMode": "auto", "orientation": "auto"}
        self._panel("stat", title, description, [query], width, height, defaults, options, instant=text)

    def gauge(self, title, description, query, unit, low, high, thresholds, width=4, height=4):
        defaults = {"unit": unit, "min": low, "max": high, "noValue": "-", "color": {"mode": "thresholds"},
                    "thresholds": steps(thresholds)}
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                   "showThresholdLabels": False, "showThresholdMarkers": True, "orientation": "auto"}
        self._panel("gauge", title, description, [query], width, height, defaults, options)

    def lines(self, title, description, queries, unit, width=12, height=8, stack=False, low=None, high=None, fill=10,
              dashed=(), step=False):
        custom = {"drawStyle": "line", "lineInterpolation": "stepAfter" if step else "linear", "lineWidth": 1,
                  "fillOpacity": 40 if stack else fill, "showPoints": "never", "spanNulls": False,
                  "stacking": {"mode": "normal" if stack else "none", "group": "A"},
                  "axisPlacement": "auto", "axisLabel": ""}
        defaults = {"unit": unit, "color": {"mode": "palette-classic"}, "custom": custom}
        if low is not None:
            defaults["min"] = low
        if high is not None:
            defaults["max"] = high
        overrides = [{"matcher": {"id": "byName", "options": name},
                      "properties": [{"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 6]}},
                                     {"id": "custom.fillOpacity", "value": 0},
                                     {"id": "color", "value": {"mode": "fixed", "fixedColor": color}}]}
                     for name, color in dashed]
        options = {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True,
                              "calcs": ["mean", "lastNotNull", "max"]},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
        self._panel("timeseries", title, description, queries, width, height, defaults, options, overrides=overrides)

    def table(self, title, description, columns, width=24, height=9, hide=(), links=None, sort=None):
        """`columns`: (query, name of its value or None when only labels count, unit). Rows with equal labels are merged."""
        overrides, names, hidden = [], {}, {"Time": True, "__name__": True}
        for index, (_, name, unit) in enumerate(columns):
            value = f"Value #{chr(ord('A') + index)}"
            if name is None:
                hidden[value] = True
                continue
            names[value] = name
            overrides.append({"matcher": {"id": "byName", "options": name},
                              "properties": [{"id": "unit", "value": unit}]})
        for label in hide:
            hidden[label] = True
        for name, url in (links or {}).items():
            overrides.append({"matcher": {"id": "byName", "options": name},
                              "properties": [{"id": "links", "value": [{"title": "Open", "url": url}]}]})
        transformations = [{"id": "merge", "options": {}}] if len(columns) > 1 else []
        transformations.append({"id": "organize", "options": {"excludeByName": hidden, "renameByName": names}})
        options = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False},
                   "sortBy": [{"displayName": sort, "desc": True}] if sort else []}
        defaults = {"unit": "none", "noValue": "-", "custom": {"align": "auto", "filterable": True}}
        self._panel("table", title, description, [(query, "") for query, _, _ in columns], width, height, defaults,
                    options, instant=True, overrides=overrides, transformations=transformations)

    def bars(self, title, description, queries, unit, width=12, height=8):
        defaults = {"unit": unit, "min": 0, "noValue": "-", "color": {"mode": "continuous-BlPu"},
                    "thresholds": steps([(None, "blue")])}
        options = {"displayMode": "basic", "orientation": "horizontal", "showUnfilled": True, "valueMode": "color",
                   "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
        self._panel("bargauge", title, description, queries, width, height, defaults, options, instant=True)

    def json(self):
        others = {"type": "dashboards", "title": "Medley", "tags": TAGS, "asDropdown": True, "icon": "external link",
                  "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}
        return {
            "uid": self.uid, "title": self.title, "description": self.description, "tags": TAGS, "editable": True,
            "graphTooltip": 1, "schemaVersion": 39, "version": 1, "refresh": self.refresh, "timezone": "browser",
            "time": {"from": self.time_from, "to": "now"}, "timepicker": {}, "fiscalYearStartMonth": 0,
            "weekStart": "", "liveNow": False, "links": [others], "templating": {"list": self.variables},
            "annotations": {"list": [{
                "name": "Annotations", "builtIn": 1, "enable": True, "hide": True, "type": "dashboard",
                "iconColor": "rgba(0, 211, 255, 1)", "datasource": {"type": "grafana", "uid": "-- Grafana --"}}]},
            "panels": self.panels,
        }


def steps(pairs):
    """[(None, "green"), (5, "red")]: green, and red from the value 5."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in pairs]}


def datasource():
    return {"name": "datasource", "label": "Data source", "description": "The Prometheus that scrapes Medley",
            "type": "datasource", "query": "prometheus", "current": {}, "hide": 0, "includeAll": False, "multi": False,
            "options": [], "refresh": 1, "regex": "", "skipUrlSync": False}


def variable(name, label, description, query, many=True):
    out = {"name": name, "label": label, "description": description, "type": "query", "datasource": DATASOURCE,
           "definition": query, "query": {"query": query, "refId": "Variable-" + name, "qryType": 1},
           "current": {}, "hide": 0, "includeAll": many, "multi": many, "options": [], "refresh": 2, "regex": "",
           "skipUrlSync": False, "sort": 1}
    if many:
        out["allValue"] = ".*"
        out["current"] = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return out
